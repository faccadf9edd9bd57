"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const P = DATA.policies, GROUPS = DATA.groups;
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#5b6472", "#8c564b", "#bcbd22"];
const KINDS = {trained: "trained", scripted: "rule", random: "random", bound: "bound: uses the ground truth"};
const colour = k => COLOURS[k % COLOURS.length];

// Elements --------------------------------------------------------------------------------------------------------------

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const replace = (node, ...children) => { node.replaceChildren(...children.flat(3).filter(c => c !== null)); return node; };

const known = x => x !== null && x !== undefined;
const show = (x, digits = 3) => known(x) ? String(+x.toPrecision(digits)).replace("-", "−") : "undefined";
const signed = x => known(x) ? (x > 0 ? "+" : x < 0 ? "−" : "±") + show(Math.abs(x)) : "undefined";
const within = e => known(e.low) && known(e.high) ? `${show(e.value)} [${show(e.low)}, ${show(e.high)}]` : show(e.value);
const percent = x => `${Math.round(100 * x)} %`;
const chance = x => known(x) && x > 0 && x < .001 ? "< 0.001" : known(x) && x > .999 && x < 1 ? "> 0.999" : show(x);

function choice(label, options, value, changed) {
  const select = el("select", {onchange: () => changed(select.value)}, options.map(([key, text]) =>
    el("option", {value: key, selected: String(key) === String(value)}, text)));
  return el("label", {}, label, select);
}
function slider(label, [low, high, step], value, changed) {
  const output = el("output", {}, "");
  const input = el("input", {type: "range", min: low, max: high, step, value, oninput: () => output.textContent = changed(+input.value)});
  output.textContent = changed(value);
  return el("label", {}, el("span", {}, label, " ", output), input);
}
function table(header, rows, numbers = []) {
  const cell = (tag, text, k) => el(tag, {class: numbers.includes(k) ? "number" : null, scope: tag === "th" ? "col" : null}, text);
  return el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, header.map((h, k) => cell("th", h, k)))),
    el("tbody", {}, rows.map(row => el("tr", {}, row.map((c, k) => cell("td", c, k)))))));
}

// A shape for each kind of policy: no meaning is in the colour alone.
function marker(kind, x, y, fill, hollow, size = 6) {
  const own = {stroke: fill, "stroke-width": 2, fill: hollow ? "#fff" : fill};
  if (kind === "trained") return svg("circle", {cx: x, cy: y, r: size, ...own});
  if (kind === "random") return svg("path", {d: `M${x - size} ${y - size}L${x + size} ${y + size}M${x - size} ${y + size}L${x + size} ${y - size}`, ...own});
  if (kind === "bound") return svg("path", {d: `M${x} ${y - size - 1}L${x + size} ${y}L${x} ${y + size + 1}L${x - size} ${y}Z`, ...own});
  return svg("path", {d: `M${x} ${y - size}L${x + size} ${y + size}L${x - size} ${y + size}Z`, ...own});
}
function scale(low, high, from, to) {
  const span = high > low ? high - low : 1;
  return x => from + (x - low) / span * (to - from);
}
function ticks(low, high, count = 5) {
  const span = high - low || 1, raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= raw), found = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * span; x += step) found.push(+x.toPrecision(12));
  return found;
}
function axes(x, y, [left, right], [bottom, top], [xLow, xHigh], [yLow, yHigh], xLabel, yLabel) {
  return svg("g", {},
    ticks(xLow, xHigh).map(t => svg("g", {}, svg("line", {x1: x(t), x2: x(t), y1: bottom, y2: top, class: "grid"}), svg("text", {x: x(t), y: bottom + 16, "text-anchor": "middle"}, show(t)))),
    ticks(yLow, yHigh).map(t => svg("g", {}, svg("line", {x1: left, x2: right, y1: y(t), y2: y(t), class: "grid"}), svg("text", {x: left - 6, y: y(t) + 4, "text-anchor": "end"}, show(t)))),
    svg("line", {x1: left, x2: right, y1: bottom, y2: bottom, class: "axis"}), svg("line", {x1: left, x2: left, y1: bottom, y2: top, class: "axis"}),
    svg("text", {x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle"}, xLabel),
    svg("text", {x: left, y: top - 10}, yLabel));
}
const extent = values => { const v = values.filter(known); return v.length ? [Math.min(...v), Math.max(...v)] : [0, 1]; };
const LETTER = 6.7; // about the width of a letter
const width = text => LETTER * text.length;
const shortened = (text, most) => width(text) <= most ? text : `${text.slice(0, Math.max(1, Math.floor(most / LETTER) - 1))}…`;
const padded = ([low, high], by = .06) => { const d = (high - low || Math.abs(high) || 1) * by; return [low - d, high + d]; };

/** Let one button of a line be the tab stop, from which the arrow keys go to the others. */
function walked(line, now) {
  const all = [...line.children];
  all.forEach((button, k) => button.tabIndex = k === now ? 0 : -1);
  line.onkeydown = event => {
    const k = all.indexOf(document.activeElement), next = {ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: all.length - 1}[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(all.length - 1, next));
    all[k].tabIndex = -1; all[to].tabIndex = 0; all[to].focus();
  };
}

// Numbers of policies ---------------------------------------------------------------------------------------------------

const gap = p => known(p.gap.value) ? Math.abs(p.gap.value) : null;
/** Return the ends of the interval of a gap without its sign. */
const spread = e => !known(e.low) ? {low: null, high: null} : {low: e.low * e.high < 0 ? 0 : Math.min(Math.abs(e.low), Math.abs(e.high)), high: Math.max(Math.abs(e.low), Math.abs(e.high))};
const usable = P.map((p, k) => k).filter(k => P[k].kind !== "bound" && known(P[k].performance.value) && known(P[k].gap.value));
const rateOf = (p, g) => p.rates[g] ? p.rates[g].value : null;
const best = usable.reduce((a, b) => P[b].performance.value > P[a].performance.value ? b : a, usable[0]);
/** The policy that others are compared with in the first two views, and with which the others begin: the first given one if it is trained, or else the best one. */
let reference = P.length && P[0].kind === "trained" && usable.includes(0) ? 0 : best;
const floor = (() => { const random = P.find(p => p.kind === "random"); return random ? random.performance.value : Math.min(...usable.map(k => P[k].performance.value)); })();

const beyond = p => !known(p.gap.limit) || gap(p) > p.gap.limit;
const least = p => { const rates = GROUPS.map(g => rateOf(p, g)).filter(known); return rates.length ? Math.min(...rates) : -Infinity; };
/** Return whether policy b has a clearly smaller gap than policy a; if chance could give both gaps, whether its worst-off group gets more. */
function fairer(b, a) {
  const [x, y] = [P[b], P[a]], [gapB, gapA] = [x, y].map(p => beyond(p) ? gap(p) : 0);
  return gapB !== gapA ? gapB < gapA : least(x) > least(y);
}
/** Return whether no group gets less with policy b than with policy a, and some get more. */
function everyone(a, b) {
  const by = GROUPS.map(g => [rateOf(P[a], g), rateOf(P[b], g)]).filter(pair => pair.every(known)).map(([from, to]) => to - from);
  return by.length > 0 && by.every(x => x >= -5e-4) && by.some(x => x > 5e-4);
}

/** Return who gains and who loses if policy b takes the place of policy a, as a sentence. */
function exchange(a, b) {
  if (a === b) return "";
  const parts = GROUPS.map(g => ({g, from: rateOf(P[a], g), to: rateOf(P[b], g)})).filter(r => known(r.from) && known(r.to));
  const said = parts.map(r => `${r.g} ${Math.abs(r.to - r.from) < 5e-4 ? "stays at" : r.to > r.from ? "gains" : "loses"} ${Math.abs(r.to - r.from) < 5e-4 ? show(r.to) : `${show(Math.abs(r.to - r.from), 2)} (${show(r.from)} → ${show(r.to)})`}`);
  return `In the ${DATA.rate}, ${said.join("; ")}.`;
}

// 1. The trade-off ------------------------------------------------------------------------------------------------------

function tradeOff(view) {
  const lowest = P.some(p => p.kind === "random") ? "random" : "the policy with the lowest performance";
  const selected = new Set(P.keys());
  let given = .1;
  const chart = el("div", {}), lines = el("div", {}), answer = el("p", {class: "answer", "aria-live": "polite", id: "answer"});
  const needed = () => P[reference].performance.value - given * Math.max(0, P[reference].performance.value - floor);
  const able = () => usable.filter(k => selected.has(k) && P[k].performance.value >= needed() - 1e-12);
  const chosen = () => able().reduce((a, b) => a === null || fairer(b, a) ? b : a, null);
  function told(k) {
    const from = P[reference], room = from.performance.value - floor;
    if (room <= 0) return `${from.label} performs no better than ${lowest}, so it has nothing to give up: choose another policy to compare with.`;
    if (k === null) return `No ticked policy keeps ${percent(1 - given)} of what ${from.label} has above ${lowest}.`;
    const p = P[k], lost = from.performance.value - p.performance.value, part = Math.abs(lost / room);
    const cost = k === reference || Math.abs(lost) < 1e-12 ? "It gives up nothing" : lost < 0 ? `It performs better than ${from.label}, by ${percent(part)}` : `It gives up ${part < .01 ? "less than 1 %" : percent(part)}`;
    const equal = able().filter(j => !beyond(P[j])), more = able().filter(j => j !== k && everyone(k, j));
    const which = equal.length > 1 ? `${equal.length} ticked policies have a gap that is not more than chance would give; the group that is worst off gets most with: ${p.label}` : `the ticked policy with the smallest gap is: ${p.label}`;
    return `If you give up at most ${percent(given)} of what ${from.label} has above ${lowest}, ${which}. ${cost} (${DATA.performance} ${show(p.performance.value)} instead of ${show(from.performance.value)}); `
      + `its gap is ${show(gap(p))}${beyond(p) ? "" : " (not more than chance would give)"}${k === reference ? "" : ` instead of ${show(gap(from))}`}. ${exchange(reference, k)}${more.length ? ` No group gets less than with ${p.label}, and some get more, with: ${more.map(j => `${P[j].label} (gap ${show(gap(P[j]))})`).join(", ")}.` : ""}`;
  }
  function draw() {
    const k = chosen();
    answer.textContent = told(k);
    const w = 720, h = 420, box = [[60, 560], [370, 30]];
    const xs = [0, Math.max(...P.filter(q => known(q.gap.value)).map(q => Math.max(gap(q), Math.abs(q.gap.high ?? 0)))) * 1.05 || 1];
    const ys = padded(extent(P.flatMap(q => [q.performance.low ?? q.performance.value, q.performance.high ?? q.performance.value])));
    const x = scale(...xs, ...box[0]), y = scale(...ys, ...box[1]);
    const noise = P.map(q => q.gap.noise).filter(known).sort((a, b) => a - b)[Math.floor(P.length / 2)] || 0;
    const names = apart(P.map((q, j) => known(q.gap.value) ? {j, x: x(gap(q)) + 10, y: y(q.performance.value) + 4, text: shortened(q.label, w - x(gap(q)) - 12)} : null).filter(known), box[1][0] - 4);
    const drawing = svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `${DATA.performance} against the gap of the ${DATA.rate}`},
      svg("rect", {x: box[0][0], y: box[1][1], width: Math.max(0, x(noise) - box[0][0]), height: box[1][0] - box[1][1], fill: "#eceff3"}),
      axes(x, y, ...box, xs, ys, `gap between groups (0 is fair; grey: what chance gives)`, DATA.performance),
      svg("line", {x1: box[0][0], x2: box[0][1], y1: y(needed()), y2: y(needed()), stroke: "#0b6e99", "stroke-dasharray": "6 4"}),
      P.map((q, j) => !known(q.gap.value) ? null : svg("g", {class: selected.has(j) ? "" : "dim", "data-policy": j},
        known(q.performance.low) ? svg("line", {x1: x(gap(q)), x2: x(gap(q)), y1: y(q.performance.low), y2: y(q.performance.high), stroke: colour(j)}) : null,
        known(q.gap.low) ? svg("line", {x1: x(spread(q.gap).low), x2: x(spread(q.gap).high), y1: y(q.performance.value), y2: y(q.performance.value), stroke: colour(j)}) : null,
        j === k ? svg("circle", {cx: x(gap(q)), cy: y(q.performance.value), r: 12, fill: "none", stroke: "#0b6e99", "stroke-width": 2}) : null,
        marker(q.kind, x(gap(q)), y(q.performance.value), colour(j), known(q.gap.limit) && gap(q) <= q.gap.limit),
        svg("text", {x: x(gap(q)) + 10, y: names.get(j).y}, names.get(j).text),
        svg("title", {}, `${q.label}: ${DATA.performance} ${within(q.performance)}, gap ${within(q.gap)}`))));
    brush(drawing, (x0, x1, y0, y1) => {
      selected.clear();
      P.forEach((q, j) => { if (!known(gap(q))) return; const px = x(gap(q)), py = y(q.performance.value); if (x1 - x0 < 4 || (px >= x0 && px <= x1 && py >= y0 && py <= y1)) selected.add(j); });
      draw();
    });
    replace(chart, drawing);
    replace(lines, parallel(selected, k));
    legend.querySelectorAll("input").forEach((box, j) => box.checked = selected.has(j));
  }
  const ticked = (p, j) => el("label", {}, el("input", {type: "checkbox", checked: true, onchange: event => { event.target.checked ? selected.add(j) : selected.delete(j); draw(); }}), " ",
    svg("svg", {width: 16, height: 16, "aria-hidden": "true"}, marker(p.kind, 8, 8, colour(j), false, 5)), ` ${p.label} (${KINDS[p.kind]})`);
  const legend = el("div", {class: "legend"}, table(["policy", DATA.performance, "gap", "more than chance?", ...GROUPS],
    P.map((p, j) => [ticked(p, j), within(p.performance), known(p.gap.value) ? within({value: gap(p), ...spread(p.gap)}) : "undefined", known(p.gap.limit) ? (beyond(p) ? "▲ yes" : "no") : "", ...GROUPS.map(g => show(rateOf(p, g)))]), [1, 2, ...GROUPS.map((_, g) => g + 4)]));
  view.append(el("p", {}, `Each mark is a policy: how well it does (${DATA.performance}), and how differently it treats the groups (gap in the ${DATA.rate}: ${DATA.benefit}). Lines are 95 % intervals over ${DATA.episodes} test episodes; hollow marks have a gap that chance alone could give.`),
    el("div", {class: "controls"}, compared(draw), slider("How much performance would you give up?", [0, 100, 1], 10, v => { given = v / 100; if (chart.isConnected || chart.parentNode) draw(); return `${v} %`; })),
    answer, chart, el("p", {class: "soft"}, "Tick the policies among which you choose, or draw a rectangle around them; click to take all."), legend,
    el("div", {class: "more"}, el("h3", {}, "Several notions of fairness at once"),
      el("p", {}, "A line for each policy: performance (top is best), and how far each notion is from fair (bottom is fair). The policy of the sentence above is thick, and the one it is compared with is clear; point at a line for its numbers."), lines));
  draw();
}

/** Return labels, by policy, moved where they would lie on each other: down, or up where they would leave the picture. */
function apart(labels, lowest = Infinity) {
  const found = new Map(), near = (one, other) => other.x < one.x + width(one.text) + 6 && one.x < other.x + width(other.text) + 6;
  for (const one of labels.sort((a, b) => a.y - b.y)) {
    const taken = [...found.values()].filter(other => near(one, other)).map(other => other.y), free = y => y <= lowest && taken.every(other => Math.abs(other - y) >= 13);
    let y = one.y;
    for (let k = 0; !free(y) && k < 60; k++) y = one.y + (k % 2 ? -1 : 1) * 4 * Math.ceil((k + 1) / 2);
    found.set(one.j, {...one, y});
  }
  return found;
}

/** Return the choice of the policy that others are compared with, which is the same in both views. */
function compared(draw) {
  const own = choice("Compare with", usable.map(k => [k, P[k].label]), reference, v => { reference = +v; dependent.forEach(one => one()); });
  dependent.push(() => { own.querySelector("select").value = reference; draw(); });
  return own;
}
const dependent = [];

/** Call back with the ends of a rectangle that the user draws, in the units of the picture. */
function brush(drawing, done) {
  let start = null;
  const box = svg("rect", {fill: "#0b6e99", opacity: .15});
  const at = event => { const r = drawing.getBoundingClientRect(), b = drawing.viewBox.baseVal; return [(event.clientX - r.left) / r.width * b.width, (event.clientY - r.top) / r.height * b.height]; };
  drawing.addEventListener("pointerdown", event => { start = at(event); drawing.setPointerCapture(event.pointerId); drawing.append(box); });
  drawing.addEventListener("pointermove", event => {
    if (!start) return;
    const now = at(event);
    for (const [name, value] of Object.entries({x: Math.min(start[0], now[0]), y: Math.min(start[1], now[1]), width: Math.abs(now[0] - start[0]), height: Math.abs(now[1] - start[1])})) box.setAttribute(name, value);
  });
  drawing.addEventListener("pointerup", event => {
    if (!start) return;
    const now = at(event), from = start;
    start = null; box.remove();
    done(Math.min(from[0], now[0]), Math.max(from[0], now[0]), Math.min(from[1], now[1]), Math.max(from[1], now[1]));
  });
}

function parallel(selected, chosen) {
  const names = [...new Set(P.flatMap(p => p.rows.filter(r => r.section === "notion" && known(r.value) && r.name !== "conditional_parity").map(r => r.name)))].slice(0, 6);
  const value = (p, name) => { const rows = p.rows.filter(r => r.section === "notion" && r.name === name && known(r.value)); return rows.length ? Math.max(...rows.map(r => Math.abs(r.value))) : null; };
  const columns = [[DATA.performance, p => p.performance.value], [`gap: ${DATA.rate}`, gap], ...names.map(n => [n.replaceAll("_", " "), p => value(p, n)])];
  const marked = [reference, chosen].filter(known);
  const w = 720, h = 280, top = 40, bottom = 240, x = scale(0, columns.length - 1, 70, w - 70);
  const scales = columns.map(([, of], c) => { const [low, high] = extent(P.map(of)); return c ? scale(0, high || 1, bottom, top) : scale(low, high, bottom, top); });
  return svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "Performance and gaps of all policies"},
    columns.map(([name, of], c) => svg("g", {}, svg("line", {x1: x(c), x2: x(c), y1: top, y2: bottom, class: "axis"}),
      svg("text", {x: x(c), y: c % 2 ? top - 22 : top - 8, "text-anchor": "middle"}, name), svg("text", {x: x(c), y: bottom + 16, "text-anchor": "middle"}, c ? "0 is fair" : show(extent(P.map(of))[0])),
      svg("text", {x: x(c) + 4, y: top + 12}, show(extent(P.map(of))[1])))),
    [...P.keys()].sort((i, j) => marked.includes(i) - marked.includes(j)).map(j => {
      const p = P[j], points = columns.map(([, of], c) => [c, of(p)]).filter(([, v]) => known(v) && !Number.isNaN(v)), clear = marked.includes(j);
      return svg("g", {class: !selected.has(j) ? "dim" : clear ? "" : "pale"}, svg("path", {d: points.map(([c, v], i) => `${i ? "L" : "M"}${x(c)} ${scales[c](v)}`).join(""), fill: "none", stroke: colour(j), "stroke-width": j === chosen ? 4 : clear ? 2.5 : 1.5, "stroke-dasharray": p.kind === "trained" ? null : "5 4"}),
        points.map(([c, v]) => marker(p.kind, x(c), scales[c](v), colour(j), false, 4)), svg("title", {}, `${p.label}: ${points.map(([c, v]) => `${columns[c][0]} ${show(v)}`).join(", ")}`)); }));
}

// 2. Who ----------------------------------------------------------------------------------------------------------------

function who(view) {
  const body = el("div", {});
  function draw() {
    const w = 720, row = 26, top = 20, left = 190, x0 = extent(P.flatMap(p => GROUPS.flatMap(g => [p.rates[g]?.low ?? rateOf(p, g), p.rates[g]?.high ?? rateOf(p, g)])));
    const xs = padded([Math.min(0, x0[0]), x0[1]], .03), x = scale(...xs, left, w - 20), h = top + row * P.length + 40;
    const chart = svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `${DATA.rate} of each group`},
      ticks(...xs).map(t => svg("g", {}, svg("line", {x1: x(t), x2: x(t), y1: top, y2: h - 40, class: "grid"}), svg("text", {x: x(t), y: h - 24, "text-anchor": "middle"}, show(t)))),
      svg("text", {x: (left + w) / 2, y: h - 6, "text-anchor": "middle"}, `${DATA.rate} (${DATA.benefit})`),
      P.map((p, j) => { const y = top + row * (j + .5); return svg("g", {}, svg("text", {x: left - 10, y: y + 4, "text-anchor": "end"}, p.label),
        GROUPS.map((g, k) => { const e = p.rates[g]; if (!e || !known(e.value)) return null; const dy = y + (k - (GROUPS.length - 1) / 2) * 7;
          return svg("g", {}, known(e.low) ? svg("line", {x1: x(e.low), x2: x(e.high), y1: dy, y2: dy, stroke: colour(k)}) : null, marker(["trained", "scripted", "bound", "random"][k % 4], x(e.value), dy, colour(k), false, 4), svg("title", {}, `${g}: ${within(e)}`)); })); }));
    const said = P.map((p, j) => j === reference ? null : levelling(reference, j)).filter(known);
    replace(body, el("div", {class: "legend"}, GROUPS.map((g, k) => el("span", {}, svg("svg", {width: 16, height: 16, "aria-hidden": "true"}, marker(["trained", "scripted", "bound", "random"][k % 4], 8, 8, colour(k), false, 5)), ` ${g}`))), chart,
      el("h3", {}, `Compared with ${P[reference].label}`), said,
      el("div", {class: "more"}, el("h3", {}, "All numbers of a policy"), numbers));
  }
  const numbers = el("div", {}), list = el("div", {});
  const fill = k => { replace(list, table(["notion", "groups", "difference, signed", "more than chance?", "chance gives"],
    P[k].rows.filter(r => ["gap", "notion", "short-term", "long-term", "twin", "welfare"].includes(r.section) && known(r.value)).map(r => [r.name.replaceAll("_", " "), r.of, within(r), known(r.noise) ? (r.beyond ? "▲ yes" : "no") : "", known(r.noise) ? show(r.noise) : ""]), [2, 4])); return ""; };
  numbers.append(el("div", {class: "controls"}, choice("Policy", P.map((p, k) => [k, p.label]), reference, v => fill(+v))), list);
  view.append(el("p", {}, `What each group gets with each policy. A number above another is not fair or unfair by itself: it says who gets more. Lines are 95 % intervals.`),
    el("div", {class: "controls"}, compared(draw)), body);
  fill(reference); draw();
}

function levelling(a, b) {
  const change = GROUPS.map(g => ({g, by: rateOf(P[b], g) - rateOf(P[a], g), known: known(rateOf(P[b], g)) && known(rateOf(P[a], g))})).filter(r => r.known);
  if (!known(P[b].performance.value) || !known(gap(P[b]))) return null;
  const closer = gap(P[b]) < gap(P[a]) - 1e-9 && !(known(P[a].gap.limit) && gap(P[a]) <= P[a].gap.limit), losers = change.filter(r => r.by < -5e-4), winners = change.filter(r => r.by > 5e-4);
  const list = rows => rows.map(r => `${r.g} (${signed(r.by)})`).join(", ");
  const cost = ` ${DATA.performance[0].toUpperCase()}${DATA.performance.slice(1)}: ${signed(P[b].performance.value - P[a].performance.value)}.${P[b].kind === "bound" ? " It uses the ground truth, which nobody has in practice." : ""}`;
  if (closer && losers.length && !winners.length) return el("p", {class: "alarm"}, el("strong", {}, "⚠ Levelling down. "), `${P[b].label} has a smaller gap (${show(gap(P[b]))} instead of ${show(gap(P[a]))}), because ${list(losers)} get less and nobody gets more.${cost}`);
  return el("p", {}, el("strong", {}, `${P[b].label}: `), `gap ${show(gap(P[b]))} instead of ${show(gap(P[a]))}. More: ${list(winners) || "nobody"}. Less: ${list(losers) || "nobody"}.${cost}`);
}

// 3. When ---------------------------------------------------------------------------------------------------------------

function when(view) {
  let k = reference ?? 0, from = 0, to = 1;
  const chart = el("div", {}), said = el("p", {class: "answer", "aria-live": "polite"});
  function draw() {
    const p = P[k], T = p.times.length, a = Math.min(Math.round(from * (T - 1)), T - 1), b = Math.max(a, Math.round(to * (T - 1)));
    const inside = GROUPS.map((g, j) => { const before = a > 0 ? p.course[a - 1][j] : [0, 0], now = p.course[b][j], demand = now[1] - before[1]; return demand > 0 ? (now[0] - before[0]) / demand : null; });
    const order = GROUPS.map((g, j) => j).filter(j => known(inside[j])).sort((i, j) => inside[j] - inside[i]), ahead = order[0], behind = order[order.length - 1];
    said.textContent = `Inside steps ${a > 0 ? p.times[a - 1] : 0} to ${p.times[b] - 1}: ` + GROUPS.map((g, j) => `${g} ${show(inside[j])}`).join(", ") + (order.length > 1 && inside[ahead] === inside[behind] ? "; no difference." : order.length > 1 ? `; ${GROUPS[ahead]} is ahead of ${GROUPS[behind]} by ${show(inside[ahead] - inside[behind])}.` : ". A group had no demand here, so there is no difference.");
    const w = 720, h = 340, box = [[60, 560], [290, 30]], rates = p.course.map(row => row.map(([x, y]) => y > 0 ? x / y : null));
    const xs = [0, p.times[T - 1] || 1], ys = padded(extent(rates.flat())), x = scale(...xs, ...box[0]), y = scale(...ys, ...box[1]);
    const hatched = rates.map((row, t) => row.some(v => !known(v)) ? svg("rect", {x: x(t ? p.times[t - 1] : 0), y: box[1][1], width: Math.max(2, x(p.times[t]) - x(t ? p.times[t - 1] : 0)), height: box[1][0] - box[1][1], fill: "url(#hatch)"}) : null);
    replace(chart, svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "Rates of the groups since the start of the episode"},
      svg("defs", {}, svg("pattern", {id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"}, svg("line", {x1: 0, x2: 0, y1: 0, y2: 6, stroke: "#5b6472"}))),
      svg("rect", {x: x(a > 0 ? p.times[a - 1] : 0), y: box[1][1], width: Math.max(2, x(p.times[b]) - x(a > 0 ? p.times[a - 1] : 0)), height: box[1][0] - box[1][1], fill: "#dcebf2"}),
      axes(x, y, ...box, xs, ys, "steps since the start of the episode", `${DATA.rate} since the start, all steps so far`), hatched,
      GROUPS.map((g, j) => { const points = rates.map((row, t) => [p.times[t], row[j]]).filter(([, v]) => known(v)); const end = points[points.length - 1];
        return svg("g", {}, svg("path", {d: points.map(([t, v], i) => `${i ? "L" : "M"}${x(t)} ${y(v)}`).join(""), fill: "none", stroke: colour(j), "stroke-width": 2, "stroke-dasharray": ["", "7 4", "2 3", "9 3 2 3"][j % 4]}), end ? svg("text", {x: x(end[0]) + 6, y: y(end[1]) + 4 + (j % 2 ? 10 : -2)}, g) : null); })));
  }
  view.append(el("p", {}, "How the groups' rates develop within an episode, pooled over the test episodes. The lines hold all steps since the start, so late changes show little; choose a stretch of time to read the rates inside it. Hatched: a group has no rate yet, because nobody of it was concerned."),
    el("div", {class: "controls"}, choice("Policy", P.map((p, j) => [j, p.label]), reference, v => { k = +v; draw(); }),
      slider("From", [0, 100, 1], 0, v => { from = Math.min(v / 100, to); if (chart.parentNode) draw(); return `${v} %`; }),
      slider("To", [0, 100, 1], 100, v => { to = Math.max(v / 100, from); if (chart.parentNode) draw(); return `${v} %`; })), said, chart);
  draw();
}

// 4. Replay -------------------------------------------------------------------------------------------------------------

const WATCHED = P.map((p, k) => k).filter(k => P[k].watched);
const nameOf = a => a < 0 ? "none" : DATA.actions[a] || (DATA.agents ? `action ${a}` : a === DATA.favourable ? "favourable" : `decision ${a}`);
const groupOf = g => DATA.recorded[g] ?? "unknown";

function replay(view) {
  let k = WATCHED[0], t = 0, timer = null;
  const picture = el("img", {class: "film", alt: "the world before this step"}), about = el("div", {}), line = el("div", {class: "line", role: "group", "aria-label": "Steps"}), control = el("div", {class: "controls"});
  const one = () => P[k].watched.action[0].length === 1;
  function draw() {
    const e = P[k].watched, frame = e.frames[Math.min(t, e.frames.length - 1)];
    picture.hidden = !frame; if (frame) picture.src = frame;
    const rows = [["step", String(t)]], true_ = [];
    if (one()) {
      const [action, truth, label] = [e.action[t][0], e.truth[t][0], e.label[t][0]];
      rows.push(["group", groupOf(e.group[t][0])], ["decision", nameOf(action)]);
      true_.push(["the correct decision was", truth < 0 ? "unknown" : nameOf(truth)], ["so the decision was", truth < 0 ? "unknown" : truth === action ? "right" : "wrong"],
        ["the decision-maker learned this", label < 0 ? "not in this step" : "in this step"], ["worth to the person", show(e.outcome[t][0])], ["reward of the decision-maker", show(e.reward[t])]);
    } else {
      const counts = {};
      e.group[t].forEach((g, i) => { if (e.action[t][i] >= 0) (counts[groupOf(g)] ||= []).push(e.action[t][i]); });
      for (const [g, actions] of Object.entries(counts)) rows.push([g, Object.entries(actions.reduce((c, a) => ({...c, [nameOf(a)]: (c[nameOf(a)] || 0) + 1}), {})).map(([n, c]) => `${n}: ${c}`).join(", ")]);
    }
    if (!one()) rows.push(["reward", show(e.reward[t])]);
    const seen = e.observation[t] || [], likely = e.probabilities[t] || [];
    const open = about.querySelector("details")?.open;
    replace(about, el("h3", {}, "Decided"), table(["", ""], rows),
      likely.length && likely.length <= 12 ? table(["action", "probability"], likely.map((v, a) => [nameOf(a), chance(v)]), [1]) : null,
      seen.length ? el("details", {open: open === true}, el("summary", {}, "What the policy saw"), table(["entry", "value"], seen.map((v, j) => [DATA.observed[j] ?? `entry ${j}`, show(v)]), [1])) : null,
      true_.length ? [el("h3", {}, "True, whether anybody knew it or not"), table(["", ""], true_)] : null,
      one() && DATA.features.length ? el("details", {}, el("summary", {}, "Features of the person in the record"), table(["feature", "value"], DATA.features.map((name, j) => [name, show(e.features[t][0][j])]), [1])) : null);
    line.querySelectorAll("button").forEach((b, j) => b.classList.toggle("now", j === t));
    walked(line, t);
  }
  function move(step) {
    const range = control.querySelector("input");
    range.value = step; range.dispatchEvent(new Event("input"));
  }
  function prepare() {
    const e = P[k].watched, last = e.action.length - 1;
    t = Math.min(t, last);
    replace(line, e.action.map((row, j) => el("button", {class: one() ? (row[0] === DATA.favourable ? "yes" : "no") : "", title: one() ? `step ${j}: ${groupOf(e.group[j][0])}, ${nameOf(row[0])}` : `step ${j}`, "aria-label": `step ${j}`, onclick: () => move(j)}, one() ? (row[0] === DATA.favourable ? "+" : "−") : "·")));
    const button = el("button", {onclick: () => {
      if (timer) { clearInterval(timer); timer = null; button.textContent = "Play"; return; }
      button.textContent = "Pause"; timer = setInterval(() => move(t >= last ? 0 : t + 1), 300);
    }}, "Play");
    replace(control, WATCHED.length > 1 ? choice("Policy", WATCHED.map(j => [j, P[j].label]), k, v => { k = +v; prepare(); }) : el("strong", {}, P[k].label),
      slider("Step", [0, last, 1], t, v => { t = v; if (about.parentNode) draw(); return String(v); }), button);
    draw();
  }
  view.append(el("p", {}, `The first steps of the test episode with seed ${DATA.seed}. Choose a step to see who was concerned, what the policy saw and decided, and what was true: a simulation knows it, even where nobody in the world would learn it.${DATA.agents ? "" : " + is the decision that people want."}`),
    control, el("div", {class: "beside"}, picture, about), line);
  prepare();
}

// 5. One change ---------------------------------------------------------------------------------------------------------

function debug(view) {
  const able = WATCHED.filter(k => P[k].watched.changed.length);
  if (!able.length) { view.append(el("p", {}, "The rules of this environment define neither another attribute nor another decision for a single person.")); return; }
  let k = able[0], c = 0, place = 0;
  const control = el("div", {class: "controls"}), said = el("p", {class: "answer", "aria-live": "polite", id: "changed"}), lines = el("div", {});
  function draw() {
    const e = P[k].watched, change = e.changed[c], found = change.places[place], steps = e.action.length, one = e.action[0].length === 1;
    const other = new Map(found.differs.map(([t, i, a]) => [`${t}/${i}`, a])), first = found.differs.length ? found.differs[0][0] : null;
    const what = change.kind === "attribute" ? (DATA.agents ? `agent ${place} (${groupOf(e.group[0][place] ?? 0)}) has the other attribute` : `the person in step ${place} (${groupOf(e.group[place][0])}) has another ${change.told[place]}`) : (DATA.agents ? `agent 0 acts differently in step ${place}` : `the decision in step ${place} is another one`);
    const own = found.own === null ? "" : ` For ${change.kind === "decision" && !one && !DATA.agents ? "that step" : DATA.agents ? "this agent" : "this person"}, the outcome changes by ${signed(found.own)}.`;
    const groups = found.outcome.map((v, g) => Math.abs(v) > 1e-9 ? `${groupOf(g)} ${signed(v)}` : null).filter(known);
    said.textContent = `The same episode with the same random numbers, but ${what}. ` + (first === null ? "Nothing else changes: every decision is the same." :
      `The first decision that differs is in step ${first}; ${found.differs.length} of ${steps * e.action[0].length} decisions differ.${own} Outcomes of the groups in these steps: ${groups.join(", ") || "unchanged"}.`);
    const cell = (t, changed) => { const a = changed && other.has(`${t}/0`) ? other.get(`${t}/0`) : e.action[t][0], differs = changed && other.has(`${t}/0`);
      return el("button", {class: `${a === DATA.favourable ? "yes" : "no"}${differs ? " differs" : ""}${change.kind && t === place && !DATA.agents ? " now" : ""}`, title: `step ${t}: ${groupOf(e.group[t][0])}, ${nameOf(a)}${differs ? ", differs" : ""}`, "aria-label": `step ${t}, ${nameOf(a)}${differs ? ", differs" : ""}`, onclick: () => { if (!DATA.agents && change.places[t]) { place = t; prepare(); lines.querySelectorAll(".line")[changed ? 1 : 0].children[t].focus(); } }}, a === DATA.favourable ? "+" : "−"); };
    if (one) {
      replace(lines, el("h3", {}, "As it was"), el("div", {class: "line"}, e.action.map((_, t) => cell(t, false))), el("h3", {}, "With the change"), el("div", {class: "line"}, e.action.map((_, t) => cell(t, true))));
      lines.querySelectorAll(".line").forEach(line => walked(line, DATA.agents ? 0 : place));
    } else {
      const counts = e.action.map((_, t) => found.differs.filter(([s]) => s === t).length), w = 720, h = 170, x = scale(0, steps, 50, w - 20), y = scale(0, Math.max(1, ...counts), 130, 20);
      replace(lines, svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "Number of decisions that differ in each step"}, axes(x, y, [50, w - 20], [130, 20], [0, steps], [0, Math.max(1, ...counts)], "step", "decisions that differ"),
        counts.map((n, t) => n ? svg("rect", {x: x(t), y: y(n), width: Math.max(2, x(1) - x(0) - 1), height: 130 - y(n), fill: "#a02c2c"}) : null)));
    }
  }
  function seek(change) {
    const steps = change.places.length, next = [...Array(steps).keys()].map(s => (place + 1 + s) % steps).find(s => change.places[s].differs.some(([t]) => t === s));
    if (next === undefined) said.textContent = `The policy treats none of the persons in these ${steps} steps differently with the other attribute.`;
    else { place = next; prepare(); }
  }
  function prepare() {
    const changes = P[k].watched.changed;
    c = Math.min(c, changes.length - 1); place = Math.min(place, changes[c].places.length - 1);
    const names = {attribute: DATA.agents ? "an agent has the other attribute" : "a person has another attribute", decision: "one decision is another one"};
    replace(control, choice("Policy", able.map(j => [j, P[j].label]), k, v => { k = +v; prepare(); }), choice("What is changed", changes.map((o, j) => [j, names[o.kind]]), c, v => { c = +v; place = 0; prepare(); }),
      slider(changes[c].kind === "attribute" && DATA.agents ? "Agent" : "Step", [0, changes[c].places.length - 1, 1], place, v => { place = v; if (said.parentNode) draw(); return String(v); }),
      changes[c].kind === "attribute" && !DATA.agents ? el("button", {onclick: () => seek(changes[c])}, "Next person who is treated differently") : null);
    draw();
  }
  view.append(el("p", {}, "The same episode twice with the same random numbers. One thing is different, so everything that differs afterwards comes from it. Red frames mark decisions that differ; a blue frame marks the step of the change. If only an attribute is changed and a decision about the person differs, the decision depends on the attribute."), control, said, lines);
  prepare();
}

// 6. Why ----------------------------------------------------------------------------------------------------------------

/** Kitagawa (1955): the difference of two rates as a part from other shares of the strata, and one from other rates in them. */
function kitagawa(from, to) {
  const total = rows => rows.reduce((s, r) => s + r[1], 0), a = total(from), b = total(to);
  if (!a || !b) return null;
  let composition = 0, rates = 0;
  from.forEach((row, k) => {
    const shareA = row[1] / a, shareB = to[k][1] / b, rateA = row[1] ? row[0] / row[1] : null, rateB = to[k][1] ? to[k][0] / to[k][1] : null;
    const ra = rateA ?? rateB ?? 0, rb = rateB ?? rateA ?? 0;
    composition += (shareB - shareA) * (ra + rb) / 2;
    rates += (rb - ra) * (shareA + shareB) / 2;
  });
  return {composition, rates};
}

function why(view) {
  const factors = Object.keys(DATA.factors).filter(f => P.every(p => p.strata[f]) && DATA.factors[f].length > 1);
  if (!factors.length || GROUPS.length < 2) { view.append(el("p", {}, "This environment has no legitimate factor by which a gap could be explained.")); return; }
  let a = reference ?? 0, b = usable.find(k => k !== a) ?? a, factor = factors[0], one = 0, two = 1;
  const control = el("div", {class: "controls"}), said = el("p", {class: "answer", "aria-live": "polite"}), body = el("div", {});
  function draw() {
    const of = (k, g) => P[k].strata[factor][g], inside = k => kitagawa(of(k, two), of(k, one)), own = [a, b].map(inside);
    const moved = [one, two].map(g => kitagawa(of(a, g), of(b, g)));
    if (own.some(o => !o) || moved.some(m => !m)) { said.textContent = "A group has no demand, so its rate is undefined."; replace(body); return; }
    const gaps = own.map(o => o.composition + o.rates), rule = moved[0].rates - moved[1].rates, people = moved[0].composition - moved[1].composition;
    said.textContent = `With ${P[b].label} in place of ${P[a].label}, the difference (${GROUPS[one]} minus ${GROUPS[two]}, in the ${DATA.rate}) moves from ${signed(gaps[0])} to ${signed(gaps[1])}. ` +
      `Of this change of ${signed(gaps[1] - gaps[0])}, ${signed(rule)} comes from other decisions about people with the same ${factor}, and ${signed(people)} from other shares of ${factor} among the people of a group, which earlier decisions can change.`;
    const bar = (label, parts) => [label, ...parts.map(signed)];
    replace(body, el("h3", {}, "Why is there a difference?"), el("p", {}, `With each policy, the difference has two parts: the groups differ in ${factor}, and people with the same ${factor} have different chances.`), table(["policy", "difference", `because the groups differ in ${factor}`, `with the same ${factor}`], [a, b].map((k, j) => bar(P[k].label, [gaps[j], own[j].composition, own[j].rates])), [1, 2, 3]),
      bars([[P[a].label, own[0].composition, own[0].rates], [P[b].label, own[1].composition, own[1].rates]], [`groups differ in ${factor}`, `same ${factor}, other rate`]),
      el("p", {class: "soft"}, "Decomposition of Kitagawa (1955), with the means of both sides as weights. It describes; a factor explains a difference only if it is a legitimate reason, which no number can decide."));
  }
  replace(control, choice("From", P.map((p, j) => [j, p.label]), a, v => { a = +v; draw(); }), choice("To", P.map((p, j) => [j, p.label]), b, v => { b = +v; draw(); }),
    choice("Factor", factors.map(f => [f, f]), factor, v => { factor = v; draw(); }),
    GROUPS.length > 2 ? [choice("Group", GROUPS.map((g, j) => [j, g]), one, v => { one = +v; draw(); }), choice("minus", GROUPS.map((g, j) => [j, g]), two, v => { two = +v; draw(); })] : null);
  view.append(el("p", {}, "Why do the groups have different rates, and why did the difference change between two policies? It is split into the part from differences between people, and the part from different treatment of the same people."), control, el("h3", {}, "Why did the difference change?"), said, body);
  draw();
}

function bars(rows, names) {
  const w = 720, h = 40 + 50 * rows.length, all = rows.flatMap(r => [0, r[1], r[2], r[1] + r[2]]), x = scale(...padded(extent(all)), 150, w - 20);
  return svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "Parts of the differences"},
    svg("line", {x1: x(0), x2: x(0), y1: 5, y2: h - 30, class: "axis"}),
    rows.map((row, k) => { const y = 12 + 50 * k; let at = {1: 0, "-1": 0};
      return svg("g", {}, svg("text", {x: 140, y: y + 16, "text-anchor": "end"}, row[0]), [row[1], row[2]].map((v, j) => { const side = v < 0 ? -1 : 1, from = at[side]; at[side] += v;
        return svg("rect", {x: Math.min(x(from), x(from + v)), y, width: Math.abs(x(from + v) - x(from)), height: 24, fill: colour(j), stroke: "#1d2330", "stroke-dasharray": j ? "4 3" : null}); })); }),
    names.map((n, j) => svg("g", {}, svg("rect", {x: 150 + 260 * j, y: h - 20, width: 14, height: 14, fill: colour(j), stroke: "#1d2330", "stroke-dasharray": j ? "4 3" : null}), svg("text", {x: 170 + 260 * j, y: h - 8}, n))));
}

// The page --------------------------------------------------------------------------------------------------------------

const VIEWS = [["tradeoff", "The trade-off", tradeOff], ["who", "Who", who], ["when", "When", when], ["replay", "Step by step", replay], ["debug", "One change", debug], ["why", "Why", why]];

function build() {
  document.getElementById("title").textContent = DATA.env;
  document.getElementById("summary").textContent = DATA.summary;
  const tabs = document.getElementById("tabs"), views = document.getElementById("views");
  const open = id => VIEWS.forEach(([name]) => {
    document.getElementById(`view-${name}`).hidden = name !== id;
    const tab = document.getElementById(`tab-${name}`);
    tab.setAttribute("aria-selected", name === id); tab.tabIndex = name === id ? 0 : -1;
  });
  for (const [name, title, fill] of VIEWS) {
    if ((name === "replay" || name === "debug") && !WATCHED.length) continue;
    const section = el("section", {id: `view-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}`, hidden: true}, el("h2", {}, title));
    views.append(section);
    tabs.append(el("button", {id: `tab-${name}`, role: "tab", "aria-controls": `view-${name}`, onclick: () => open(name)}, title));
    if ((name === "tradeoff" || name === "who") && !usable.length) section.append(el("p", {}, "No policy has a performance and a gap that are defined."));
    else fill(section);
  }
  tabs.addEventListener("keydown", event => {
    const all = [...tabs.children], now = all.indexOf(document.activeElement);
    const next = {ArrowRight: all[(now + 1) % all.length], ArrowLeft: all[(now - 1 + all.length) % all.length], Home: all[0], End: all[all.length - 1]}[event.key];
    if (!next) return;
    next.focus(); next.click();
  });
  document.getElementById("footer").textContent = `${DATA.episodes} test episodes from seed ${DATA.seed}. Intervals are at 95 % and over episodes: another training seed can give another policy. Measures assess; they do not say what is fair.`;
  const summary = document.getElementById("print");
  summary.hidden = !usable.length;
  summary.addEventListener("click", () => { document.documentElement.classList.add("summary"); window.print(); });
  window.addEventListener("afterprint", () => document.documentElement.classList.remove("summary"));
  open("tradeoff");
}
build();
