"""Run every notebook and store its outputs: `python notebooks/run.py`.

A chart is stored as its Vega-Lite specification, which Jupyter draws, and as a PNG, which a page of
the repository and the documentation show.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent

SETUP = """
import base64 as _base64
import altair as _altair
import vl_convert as _vl_convert

def _stored(spec, **_):
    png = _vl_convert.vegalite_to_png(spec, scale=1) if _draws else b""
    return {
        "application/vnd.vegalite.v6+json": spec,
        "image/png": _base64.b64encode(png).decode(),
        "text/plain": "<chart>",
    }

_altair.renderers.register("stored", _stored)
_altair.renderers.enable("stored")
"""


def run(path: Path, *, draws: bool = True) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of the current code; `draws`: with the pictures."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=600,
        startup_timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    with client.setup_kernel():
        client.kc.execute(f"_draws = {draws}\n{SETUP}", silent=True, store_history=False)
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
    count = 0
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })
    return notebook


def main(paths: list[Path]) -> None:
    for path in paths or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(f"{path.name}: {path.stat().st_size / 1e3:,.0f} kB")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
