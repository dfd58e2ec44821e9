"use strict";
// Tables of which each row has a cell a column: headings sort, a field filters. The page is whole
// without it.
{
  const UNITS = {
    ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600,
    B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30, K: 1e3, M: 1e6, G: 1e9,
  };
  const MANY = 12;

  // The column of each heading: [heading, column], those of one column only.
  const columns = (head) => {
    const taken = [], found = [];
    [...head.rows].forEach((row, at) => {
      let column = 0;
      for (const cell of row.cells) {
        while (taken[at]?.[column]) column++;
        for (let down = 0; down < cell.rowSpan; down++) {
          for (let across = 0; across < cell.colSpan; across++) (taken[at + down] ??= [])[column + across] = true;
        }
        if (cell.colSpan === 1) found.push([cell, column]);
        column += cell.colSpan;
      }
    });
    return [found, Math.max(0, ...taken.map((row) => row.length))];
  };

  // A cell's number in the base unit, or its text.
  const key = (cell) => {
    const text = (cell.querySelector("strong") ?? cell).textContent.trim();
    const number = /^[^\d\-.]{0,4}\s*(-?[\d,]*\.?\d+)\s*([a-zA-Z%]*)/.exec(text);
    if (!number) return text === "–" || text === "" ? null : text.toLowerCase();
    return parseFloat(number[1].replaceAll(",", "")) * (UNITS[number[2]] ?? 1);
  };

  const compare = (a, b, sign) => {
    // Whatever the order, what is not there comes last.
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === typeof b) return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
    return typeof a === "number" ? -1 : 1;
  };

  const sortable = (table) => {
    if (!table.tHead || !table.tBodies.length) return;
    const [headings, width] = columns(table.tHead);
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    const whole = (row) => row.cells.length === width;
    const data = rows.filter(whole);
    if (data.length < 3 || rows.some((row) => [...row.cells].some((cell) => cell.rowSpan > 1))) return;
    const order = new Map(rows.map((row, at) => [row, at]));
    for (const [heading, column] of headings) {
      if (!heading.textContent.trim()) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: "none" }[heading.ariaSort] ?? "ascending";
        for (const [other] of headings) other.removeAttribute("aria-sort");
        if (next !== "none") heading.ariaSort = next;
        const sign = next === "descending" ? -1 : 1;
        const by = (a, b) => next === "none" ? order.get(a) - order.get(b) : compare(key(a.cells[column]), key(b.cells[column]), sign);
        for (const body of table.tBodies) {
          const [fixed, moved] = [[], []];
          for (const row of body.rows) (whole(row) ? moved : fixed).push(row);
          body.append(...fixed, ...moved.sort(by));
        }
      });
    }
    if (data.length >= MANY) filterable(table, data);
  };

  const filterable = (table, rows) => {
    const bar = document.createElement("div"), said = document.createElement("span");
    const label = document.createElement("label"), field = document.createElement("input");
    bar.className = "filter";
    field.type = "search";
    field.placeholder = "words or numbers";
    label.append("Filter rows ", field);
    said.role = "status";
    bar.append(label, said);
    (table.closest(".scroll") ?? table).before(bar);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      said.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    });
  };

  document.querySelectorAll("table").forEach(sortable);
}
