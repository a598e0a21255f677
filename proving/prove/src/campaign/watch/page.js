// Asks for the state once a second and shows it.
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const by = (id) => document.getElementById(id);
const put = (id, text) => { by(id).textContent = text; };
const number = (value, digits, unit) => value == null ? "–" : value.toFixed(digits) + unit;
const clock = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
};
function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function plot(state) {
  const svg = by("plot");
  svg.replaceChildren();
  const points = (state.history || []).filter(([, ttft]) => ttft != null);
  if (points.length < 2) return;
  const most = Math.max(state.limit_ms || 0, ...points.map(([, ttft]) => ttft)) * 1.1 || 1;
  const from = points[0][0], to = points[points.length - 1][0];
  const x = (at) => 44 + (at - from) / Math.max(1, to - from) * 664;
  const y = (ms) => 184 - ms / most * 172;
  for (const part of [0, 0.5, 1]) {
    svg.append(element("text", { x: 4, y: y(most * part) + 4 }, (most * part).toFixed(0)));
  }
  if (state.limit_ms != null) {
    svg.append(element("line", { class: "limit", x1: 44, x2: 708, y1: y(state.limit_ms), y2: y(state.limit_ms) }));
  }
  const line = points.map(([at, ms]) => `${x(at).toFixed(1)},${y(ms).toFixed(1)}`).join(" ");
  svg.append(element("polyline", { class: "ttft", points: line }));
  svg.append(element("text", { x: 44, y: 198 }, clock(from)));
  svg.append(element("text", { x: 672, y: 198 }, clock(to)));
}
function show(state) {
  put("title", state.title || "");
  put("phase", state.phase || "waiting");
  put("left", `${clock(state.seconds || 0)}${state.left_s == null ? "" : `, ${clock(state.left_s)} left of the ${state.left_of}`}`);
  put("users", state.users ?? "–");
  put("ttft", number(state.ttft_ms, 0, " ms"));
  put("limit", number(state.limit_ms, 0, " ms"));
  put("kv", state.kv_cache == null ? "–" : number(state.kv_cache * 100, 1, " %"));
  put("preemptions", number(state.preemptions, 0, ""));
  put("rate", number(state.requests_per_s, 1, ""));
  put("errors", state.errors ?? "–");
  plot(state);
  const rows = [...(state.events || [])].reverse().map(([at, kind, says]) => {
    const row = document.createElement("li");
    for (const text of [clock(at), kind, says]) {
      const cell = document.createElement("span");
      cell.textContent = text;
      row.append(cell);
    }
    return row;
  });
  by("events").replaceChildren(...rows);
}
async function look() {
  try {
    const answer = await fetch("/state.json", { cache: "no-store" });
    show(await answer.json());
  } catch {
    put("left", "the campaign is over, or cannot be reached");
  }
  setTimeout(look, 1000);
}
look();
