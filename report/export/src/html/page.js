"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Narrow windows show the rows of these tables one below the other, with the names of the columns at the numbers.
  for (const table of all("table.data:not(.values)")) {
    table.classList.add("cards");
    const names = all("thead th", table).map((head) => head.textContent);
    for (const row of all("tbody tr", table)) {
      [...row.cells].forEach((cell, column) => (cell.dataset.n = names[column]));
    }
  }

  // Tables: a click on a heading sorts, numbers from the greatest, texts from the first.
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.classList.contains("n") ? -Infinity : cell.textContent;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? (a < b ? -1 : a > b ? 1 : 0) : String(a).localeCompare(String(b)));
  for (const table of all("table[data-sort]")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("n") ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => ({ row, key: key(row, column) }));
        rows.sort((a, b) => sign * compare(a.key, b.key));
        body.append(...rows.map(({ row }) => row));
      });
    });
  }

  // Heat maps: what is under the pointer.
  for (const figure of all("figure.heat")) {
    const read = document.createElement("p");
    read.className = "read";
    figure.append(read);
    const { from, step, unit, wall } = figure.dataset;
    // The time of day in UTC, if it is known; else seconds of the trace's clock.
    const ofDay = (column) => {
      const ns = BigInt(wall) + BigInt(step) * BigInt(column);
      const iso = new Date(Number(ns / 1000000n)).toISOString().slice(11, 23);
      return `${iso}${String(ns % 1000000n).padStart(6, "0").slice(0, 3)}`;
    };
    const seconds = (column) => `${((Number(from) + Number(step) * column) / 1e9).toFixed(6)} s`;
    const moment = wall === undefined ? seconds : ofDay;
    const show = (event) => {
      const svg = event.target.closest("svg[data-counts]");
      if (!svg) {
        return;
      }
      const box = svg.getBoundingClientRect();
      const columns = svg.viewBox.baseVal.width;
      const column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
      const counts = new Map(svg.dataset.counts.split(" ").map((cell) => cell.split(":")));
      const row = svg.closest("tr");
      const label = row.querySelector("th").textContent;
      const until = svg.dataset.until === undefined ? "" : ` to ${svg.dataset.until}`;
      read.textContent = `${moment(column)} to ${moment(column + 1)}, ${label}${until}: ${counts.get(String(column)) ?? 0} ${unit}`;
    };
    figure.addEventListener("pointermove", show);
    figure.addEventListener("pointerdown", show);
  }

  // Flame graphs: a click makes a frame as wide as the picture, a click on the outermost one shows all.
  const flames = all("svg.flame").map((flame) => {
    const frames = all("svg", flame).map((svg) => ({
      svg,
      x: parseFloat(svg.getAttribute("x")),
      y: Number(svg.getAttribute("y")),
      width: parseFloat(svg.getAttribute("width")),
      title: svg.querySelector("title").textContent,
      name: svg.querySelector("text").textContent.toLowerCase(),
    }));
    const read = flame.nextElementSibling;
    let chosen = null;
    const zoom = (frame) => {
      chosen = frame;
      for (const { svg, x, y, width } of frames) {
        const from = frame ? ((x - frame.x) / frame.width) * 100 : x;
        const wide = frame ? (width / frame.width) * 100 : width;
        const isCaller = frame && y < frame.y && from <= 0.001 && from + wide >= 99.999;
        const isShown = !frame || isCaller || (y >= frame.y && from > -0.001 && from + wide < 100.001);
        svg.classList.toggle("faded", Boolean(isCaller));
        svg.toggleAttribute("hidden", !isShown);
        svg.setAttribute("x", `${isCaller ? 0 : from}%`);
        svg.setAttribute("width", `${isCaller ? 100 : wide}%`);
      }
    };
    const of = (event) => {
      const svg = event.target.closest("svg.flame > svg");
      return svg && frames.find((frame) => frame.svg === svg);
    };
    flame.addEventListener("click", (event) => {
      const frame = of(event);
      if (frame) {
        zoom(frame === chosen || frame.width > 99.999 ? null : frame);
      }
    });
    flame.addEventListener("pointermove", (event) => {
      const frame = of(event);
      if (frame) {
        read.textContent = frame.title;
      }
    });
    return frames;
  });

  // The search: rows that have the text, and frames.
  const find = document.getElementById("find");
  const field = find.querySelector("input");
  const rows = all("table[data-sort] tbody tr").map((row) => ({ row, text: row.textContent.toLowerCase() }));
  let due = 0;
  const search = () => {
    const text = field.value.trim().toLowerCase();
    let found = 0;
    for (const each of rows) {
      const fits = each.text.includes(text);
      each.row.hidden = !fits;
      found += fits ? 1 : 0;
    }
    for (const details of all("details.values")) {
      details.hidden = all("tbody tr", details).every((row) => row.hidden);
    }
    let frames = 0;
    for (const frame of flames.flat()) {
      const fits = text !== "" && frame.name.includes(text);
      frame.svg.classList.toggle("found", fits);
      frames += fits ? 1 : 0;
    }
    const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
    find.querySelector("output").textContent = text === "" ? "" : `${count(found, "row")}${flames.length ? `, ${count(frames, "frame")}` : ""}`;
  };
  field.addEventListener("input", () => {
    clearTimeout(due);
    due = setTimeout(search, 80);
  });
  find.hidden = false;
})();
