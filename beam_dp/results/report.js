"use strict";
// Sort the table by a column: numbers by size, text by its letters; what is missing comes last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  const body = table.tBodies[0];
  heads.forEach((head, at) => {
    head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const cell = (row) => row.cells[at];
      const number = (row) => parseFloat(cell(row).dataset.order);
      const missing = (row) => cell(row).classList.contains("number") && Number.isNaN(number(row));
      const rows = Array.from(body.rows);
      rows.sort((a, b) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        const order = Number.isNaN(number(a)) || Number.isNaN(number(b))
          ? cell(a).textContent.localeCompare(cell(b).textContent)
          : number(a) - number(b);
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });
}
