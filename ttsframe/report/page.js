// Draw every chart at the width that it has: on a narrow screen and on paper, panels go below each other.
const MENU = 40;
const PAPER = 688;
const PAPER_HEIGHT = 860;
// Of the width that a panel was drawn for: to stay in its row, or to join one.
const NARROWEST = { stay: 0.45, join: 0.65 };
const PANEL_MIN = 112;
const ROOM_FOR_AXIS = 84;
const WIDEST = { one: 2, several: 1.6 };
const ROWS = ["concat", "hconcat", "vconcat"];

const pen = document.createElement("canvas").getContext("2d");

function panelsOf(spec) {
  const kind = ROWS.find((name) => spec[name]);
  return kind ? spec[kind].flatMap(panelsOf) : [spec];
}

function columnsOf(spec) {
  if (spec.hconcat) return spec.hconcat.map(columnsOf).reduce((a, b) => a + b, 0);
  if (spec.concat) return Math.min(spec.columns ?? Infinity, spec.concat.length);
  return spec.vconcat ? Math.max(...spec.vconcat.map(columnsOf)) : 1;
}

function visit(node, change) {
  if (node === null || typeof node !== "object") return;
  for (const [name, value] of Object.entries(node)) {
    // What a run says stays as it is.
    if (name === "datasets" || name === "data") continue;
    change(node, name, value);
    visit(value, change);
  }
}

// Break texts where facts or words end.
function wrap(texts, font, width) {
  pen.font = font;
  return [texts ?? []].flat().flatMap((text) => {
    const lines = [];
    for (const part of text.split(/(?<= · )/).flatMap((fact) =>
      pen.measureText(fact).width > width ? fact.split(/(?<= )/) : [fact])) {
      const longer = (lines.at(-1) ?? "") + part;
      if (lines.length && pen.measureText(longer.trimEnd()).width <= width) lines[lines.length - 1] = longer;
      else lines.push(part);
    }
    return lines.map((line) => line.replace(/ ·? ?$/, ""));
  });
}

function wrapTitle(title, width) {
  if (!title || typeof title === "string") return;
  title.text = wrap(title.text, `bold ${title.fontSize ?? 13}px ${title.font}`, width);
  if (title.subtitle) title.subtitle = wrap(title.subtitle, `${title.subtitleFontSize ?? 12}px ${title.subtitleFont ?? title.font}`, width);
}

function resize(panel, width) {
  for (const layer of panel.layer ?? []) {
    // A text in the middle of its panel stays there.
    if (layer.encoding?.x?.value === panel.width / 2) layer.encoding.x.value = width / 2;
  }
  panel.width = width;
}

// Put the panels of a row into several; the first of each gets the axis that only the first had.
function breakRows(spec, columns) {
  for (const row of [spec, ...(spec.vconcat ?? [])]) {
    if (row.hconcat && row.hconcat.length > columns) {
      row.concat = row.hconcat;
      row.align = "each";
      delete row.hconcat;
    }
    if (!row.concat) continue;
    row.columns = columns;
    const spacing = row.spacing?.column ?? row.spacing ?? 20;
    // Rows that are laid out by their panels alone leave no room for axes and titles.
    row.spacing = { row: row.bounds === "flush" ? ROOM_FOR_AXIS : Math.max(spacing, 28), column: spacing };
    const [first] = row.concat;
    row.concat.forEach((panel, i) => {
      if (i === 0 || i % columns) return;
      (panel.layer ?? []).forEach((layer, j) => {
        const like = first.layer?.[j]?.encoding?.y;
        if (like && layer.encoding?.y && "axis" in like) layer.encoding.y.axis = like.axis;
      });
    });
  }
}

async function measure(spec) {
  const box = document.createElement("div");
  const options = { renderer: "svg", ast: true, actions: false, tooltip: false };
  const result = await vegaEmbed(box, { ...spec, title: undefined }, options);
  const { width, height } = box.querySelector("svg.marks");
  result.finalize();
  return { width: width.baseVal.value, height: height.baseVal.value };
}

async function fit(original, width) {
  const spec = structuredClone(original);
  if (width < 700) {
    visit(spec, (node, name, value) => {
      if (name !== "legend" || !value || (value.orient ?? "right") !== "right") return;
      // Below the title of the axis, which another panel may have.
      Object.assign(value, { orient: "bottom", offset: 30, columns: Math.max(1, Math.floor(width / 200)) });
    });
  }
  const panels = panelsOf(spec);
  let size;
  if (panels.every((panel) => typeof panel.width === "number")) {
    const given = Math.max(...panels.map((panel) => panel.width));
    const most = columnsOf(spec);
    const around = (await measure(spec)).width / most - given;
    const widest = given * (most > 1 ? WIDEST.several : WIDEST.one);
    const widthOf = (columns) => Math.floor(Math.min(width / columns - around, widest));
    let columns = spec.concat ? spec.concat.length : most;
    const narrowest = (columns) => Math.max(given * NARROWEST[columns > most ? "join" : "stay"], PANEL_MIN);
    while (columns > 1 && widthOf(columns) < narrowest(columns)) columns -= 1;
    if (!spec.vconcat || spec.vconcat.length === 1) {
      // As many panels in each row as in the last, or nearly.
      columns = Math.ceil(panels.length / Math.ceil(panels.length / columns));
    }
    const factor = Math.max(widthOf(columns), 120) / given;
    if (columns !== most) breakRows(spec, columns);
    panels.forEach((panel) => resize(panel, Math.round(panel.width * factor)));
    const titles = panels.map((panel) => panel.title);
    const wrapTitles = () => panels.forEach((panel, i) => {
      if (panel === spec) return;
      panel.title = structuredClone(titles[i]);
      wrapTitle(panel.title, panel.width + (columns > 1 ? 8 : MENU));
    });
    for (let excess = 0, i = 0; i < 3; i += 1) {
      panels.forEach((panel) => resize(panel, Math.max(80, Math.floor(panel.width - excess / columns))));
      wrapTitles();
      size = await measure(spec);
      excess = size.width - width;
      if (excess <= 0) break;
    }
  }
  wrapTitle(spec.title, width - MENU);
  return width === PAPER && size ? divide(spec, size.height) : [spec];
}

// Divide panels that fill more than a sheet between charts of their own.
function divide(spec, height) {
  const n = spec.concat?.length ?? 1;
  const rows = Math.ceil(n / (spec.columns ?? n));
  if (rows < 2 || height <= PAPER_HEIGHT) return [spec];
  const several = spec.columns * Math.max(1, Math.floor((rows * PAPER_HEIGHT) / height));
  return Array.from({ length: Math.ceil(n / several) }, (_, i) => ({
    ...spec,
    title: i ? undefined : spec.title,
    concat: spec.concat.slice(i * several, (i + 1) * several),
  }));
}

// A chart of many panels has its caption below it.
const MANY = 6;

const boxes = [...document.querySelectorAll(".chart")].map((box) => ({
  box,
  spec: JSON.parse(document.getElementById(box.id + "-spec").textContent),
}));

for (const { box, spec } of boxes) {
  box.closest("figure").classList.toggle("many", panelsOf(spec).length >= MANY);
}

async function draw(chart, width) {
  const { box, spec } = chart;
  if (!width || width === chart.width) return;
  chart.width = width;
  const options = {
    renderer: "svg",
    ast: true,
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: box.id,
  };
  try {
    const fitted = await fit(spec, width);
    // A later request draws at its own width.
    if (chart.width !== width) return;
    chart.results?.forEach((result) => result.finalize());
    const parts = fitted.map(() => document.createElement("div"));
    box.replaceChildren(...parts);
    chart.results = await Promise.all(fitted.map((part, i) => vegaEmbed(parts[i], part, options)));
  } catch (error) {
    box.textContent = "This chart could not be drawn: " + error.message;
  }
}

const drawAll = (width) => boxes.forEach((chart) => draw(chart, width ?? chart.box.clientWidth));

let pending;
addEventListener("resize", () => {
  clearTimeout(pending);
  pending = setTimeout(drawAll, 150);
});
addEventListener("beforeprint", () => drawAll(PAPER));
addEventListener("afterprint", () => drawAll());
drawAll();
