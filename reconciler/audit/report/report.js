"use strict";
(() => {
  const PAGE = 100; // findings shown at a time
  const PRINTED = 500;
  const element = (id) => document.getElementById(id);

  // Copying a command: where the clipboard is closed to the page, its text is selected, so that the keys copy it.
  const copy = async (button) => {
    const code = button.previousElementSibling;
    let done = "Copied";
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      done = "Selected: press Ctrl+C";
    }
    button.textContent = done;
    element("announced").textContent = `${done}: ${code.textContent}`;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button);
  });
  for (const button of document.querySelectorAll("button.copy")) button.hidden = false;
  if (!element("data")) return;

  // The findings: each column of text is a list of values, and for each finding the index of its value.
  const data = JSON.parse(element("data").textContent);
  const total = data.verdict.rows.length;
  const text = (column, row) => data[column].values[data[column].rows[row]];
  const searched = ["verdict", "broker", "where", "disk_topic_id", "metadata_topic_id", "evidence"];
  const table = element("findings-table");
  const body = table.tBodies[0];
  const state = { words: [], verdict: "", broker: "", order: "urgency", direction: 1, page: 0 };
  let haystack = null; // what is searched of each finding, in lower case; made with the first search
  let found = null; // the findings that are shown, in their order

  const collator = new Intl.Collator("en", { numeric: true });
  const keys = {
    urgency: () => data.verdict.rows.map((_, row) => row),
    verdict: () => data.verdict.rows,
    broker: () => data.broker.rows,
    size: () => data.disk_bytes,
    // The oldest have the greatest age.
    age: () => data.modified_ms.map((time) => (time === null ? null : -time)),
  };
  const ranks = (column) => {
    const { values, rows } = data[column];
    const places = new Int32Array(values.length);
    values.map((_, place) => place).sort((a, b) => collator.compare(values[a], values[b]))
      .forEach((place, rank) => { places[place] = rank; });
    return rows.map((place) => places[place]);
  };
  const known = {};
  const keyOf = (order) => (known[order] ??= keys[order] ? keys[order]() : ranks(order));

  const search = () => {
    haystack ??= data.verdict.rows.map((_, row) => searched.map((name) => text(name, row)).join("\n").toLowerCase());
    return haystack;
  };
  const choose = () => {
    const verdict = data.verdict.values.indexOf(state.verdict);
    const broker = data.broker.values.indexOf(state.broker);
    const texts = state.words.length ? search() : null;
    found = [];
    for (let row = 0; row < total; row += 1) {
      if (state.verdict && data.verdict.rows[row] !== verdict) continue;
      if (state.broker && data.broker.rows[row] !== broker) continue;
      if (texts && !state.words.every((word) => texts[row].includes(word))) continue;
      found.push(row);
    }
    if (state.order !== "urgency" || state.direction < 0) {
      const key = keyOf(state.order);
      const last = state.direction * Infinity; // what is not known comes last
      found.sort((a, b) => state.direction * ((key[a] ?? last) - (key[b] ?? last)) || a - b);
    }
  };

  const cell = (tag, kind, content, label) => {
    const made = document.createElement(tag);
    made.className = kind;
    made.append(...[content].flat());
    if (label) made.dataset.label = label;
    return made;
  };
  const command = (row) => {
    const code = cell("code", "", text("next", row));
    const button = cell("button", "copy", "Copy");
    button.type = "button";
    const details = document.createElement("details");
    details.append(cell("summary", "", "what to run next"), cell("div", "command", [code, button]));
    return details;
  };
  const line = (row) => {
    const made = document.createElement("tr");
    made.append(
      cell("td", `verdict ${text("severity", row)}`, text("verdict", row)),
      cell("td", "figure broker", text("broker", row), "broker"),
      cell("td", "path", text("where", row)),
      cell("td", "id", [text("disk_topic_id", row), document.createElement("br"), text("metadata_topic_id", row)],
        "topic ID on disk, in the metadata"),
      cell("td", "figure", text("size", row), "size"),
      cell("td", "figure", text("age", row), "age"),
      cell("td", "evidence", text("next", row) ? [text("evidence", row), command(row)] : text("evidence", row)),
    );
    return made;
  };
  const number = (value) => value.toLocaleString("en-US");
  const render = (length = PAGE) => {
    const pages = Math.max(1, Math.ceil(found.length / length));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const first = state.page * length;
    const shown = found.slice(first, first + length);
    body.replaceChildren(...shown.map(line));
    const which = found.length === total ? `${number(total)} findings`
      : `${number(found.length)} of ${number(total)} findings`;
    element("shown").textContent = shown.length
      ? `${which}; shown: ${number(first + 1)} to ${number(first + shown.length)}` : `${which}: nothing matches`;
    element("previous").disabled = state.page === 0;
    element("following").disabled = state.page === pages - 1;
    element("pages").hidden = pages === 1;
  };
  const refresh = () => { state.page = 0; choose(); render(); };

  // Sorting: a heading sorts by its column, the other way round when it is used again; a choice does the same where
  // the table has no headings because the screen is narrow.
  const order = element("order");
  const headings = [...table.tHead.querySelectorAll("th[data-order]")];
  const sortBy = (name, direction) => {
    Object.assign(state, { order: name, direction });
    order.value = name;
    for (const heading of headings) {
      if (heading.dataset.order === name) heading.ariaSort = direction > 0 ? "ascending" : "descending";
      else heading.removeAttribute("aria-sort");
    }
    refresh();
  };
  const usual = (name) => (name === "size" || name === "age" ? -1 : 1); // the largest and the oldest first
  for (const heading of headings) {
    const button = cell("button", "", heading.textContent);
    button.type = "button";
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const name = heading.dataset.order;
      sortBy(name, state.order === name ? -state.direction : usual(name));
    });
  }
  order.addEventListener("change", () => sortBy(order.value, usual(order.value)));

  const filter = ({ words = "", verdict = "", broker = "" }) => {
    element("words").value = words;
    element("of-verdict").value = verdict;
    element("of-broker").value = broker;
    read();
  };
  const read = () => {
    state.words = element("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    state.verdict = element("of-verdict").value;
    state.broker = element("of-broker").value;
    refresh();
  };
  for (const [id, column] of [["of-verdict", "verdict"], ["of-broker", "broker"]]) {
    const used = new Set(data[column].rows);
    element(id).append(...data[column].values.filter((_, place) => used.has(place)).map((value) => new Option(value)));
    element(id).addEventListener("change", read);
  }
  element("words").addEventListener("input", read);
  element("clear").addEventListener("click", () => { filter({}); element("words").focus(); });
  for (const [id, step] of [["previous", -1], ["following", 1]]) {
    element(id).addEventListener("click", () => {
      state.page += step;
      render();
      element("findings").scrollIntoView();
    });
  }
  // A link from a chart to the findings behind it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.find");
    if (link) filter(link.dataset);
  });

  addEventListener("beforeprint", () => { state.page = 0; render(PRINTED); });
  addEventListener("afterprint", () => render());
  element("controls").hidden = false;
  element("by-hand").hidden = true;
  refresh();
})();
