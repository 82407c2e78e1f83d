// What both pages share: asking the server, and making elements. Text is only ever set as text.

export const byId = (id) => document.getElementById(id);

export function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

/** The answer of the server as an object; an Error with its sentence (and .field, .status) if it refuses. */
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw Object.assign(new Error("The server does not answer. Is it still running?"), { status: 0 });
  }
  if (response.status === 401) {
    location.assign("/login");
  }
  let content = {};
  try {
    content = await response.json();
  } catch {
    // not JSON: the sentence below says so
  }
  if (!response.ok) {
    const sentence = content.error || `The server answered with status ${response.status}.`;
    throw Object.assign(new Error(sentence), { status: response.status, field: content.field });
  }
  return content;
}

export function showProblem(error) {
  const box = byId("problem");
  box.textContent = error ? error.message : "";
  box.hidden = !error;
}

/** Calls `look` again and again; it returns after how many milliseconds it wants to be called next. */
export async function repeatedly(look) {
  for (;;) {
    const pause = await look();
    if (pause === null) return;
    await new Promise((done) => setTimeout(done, pause));
    if (document.hidden) {
      await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    }
  }
}

const whole = new Intl.NumberFormat("en");

export const count = (value) => (value === null || value === undefined ? "" : whole.format(value));

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 120 ? `${minutes} min ${Math.round(value % 60)} s` : `${(value / 3600).toFixed(1)} h`;
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  const [value, unit] = bytes < 1048576 ? [bytes / 1024, "kB"] : [bytes / 1048576, "MB"];
  return `${Number(value.toFixed(1))} ${unit}`;
}

/** Three digits, as the command line shows them. */
export function figure(value) {
  if (value === null || value === undefined) return "not known";
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  return magnitude >= 1e-3 && magnitude < 1e6 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

export const moment = (time) =>
  new Date(1000 * time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** good, fair, bad, busy or idle: how a run is coloured, beside the words that say it. */
export const tone = (run) => run.tone;

export const TASK_NAMES = { recover: "recovery", audit: "audit", compare: "comparison", plan: "plan" };

export const KIND_WORDS = { file: "model file", endpoint: "endpoint", table: "table" };
