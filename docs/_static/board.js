// Sorts and filters the table of the leaderboard. Without this script, the page shows the whole table.
"use strict";

for (const board of document.querySelectorAll(".board")) {
  const heads = [...board.querySelectorAll("thead th")];
  const body = board.querySelector("tbody");
  const filter = board.querySelector(".board-filter");
  const total = body.rows.length;

  /** Return the content of a row's cell: a number, the first line of a text, or null if there is none. */
  function content(row, column) {
    const { dataset, firstChild } = row.cells[column];
    if ("value" in dataset) return dataset.value === "" ? null : Number(dataset.value);
    return firstChild?.textContent.trim() || null;
  }

  /** Return whether one content comes before another: negative, zero or positive. Empty ones come last. */
  function order(one, other, sign) {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "number" && typeof other === "number") return sign * (one - other);
    return sign * String(one).localeCompare(String(other), undefined, { numeric: true });
  }

  /** Sort the rows by a column, upwards at first; equal rows keep their order. */
  function sort(column) {
    const upwards = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", upwards ? "ascending" : "descending");
    const sign = upwards ? 1 : -1;
    body.append(...[...body.rows].sort((one, other) => order(content(one, column), content(other, column), sign)));
  }

  /** Show the rows that have the chosen names, and all words of the text. */
  function apply() {
    const words = filter.elements.text.value.toLowerCase().split(/\s+/);
    const chosen = heads.flatMap((head, column) => {
      const name = filter.elements[head.textContent]?.value;
      return name ? [[column, name]] : [];
    });
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      const named = chosen.every(([column, name]) => content(row, column) === name);
      row.hidden = !(named && words.every((word) => text.includes(word)));
    }
    const shown = [...body.rows].filter((row) => !row.hidden).length;
    filter.querySelector("output").textContent = `${shown} of ${total} rows`;
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.append(button);
  });
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  filter.hidden = false;
  apply(); // browsers keep what was chosen before a page was loaded again
}
