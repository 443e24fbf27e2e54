for (const box of document.querySelectorAll(".chart")) {
  const spec = JSON.parse(document.getElementById(box.id + "-spec").textContent);
  const options = {
    renderer: "svg",
    ast: true,
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: box.id,
  };
  vegaEmbed(box, spec, options).catch((error) => {
    box.textContent = "This chart could not be drawn: " + error.message;
  });
}
