// The first page: the form, and the list of runs.
import { ask, byId, KIND_WORDS, make, moment, repeatedly, showProblem, size, TASK_NAMES, tone } from "./common.js";

const form = byId("form");
const FILE_WORDS = { file: "Model file", table: "Table of samples" };
let about = null;

const kind = () => form.elements.kind.value;

const task = () => form.elements.task.value;
const TASK_WORDS = {
  recover: "Find the network behind the answers: widths, weights and biases.",
  audit: "Find out whether the answers give the network away, after how many queries, at how many decimals.",
  compare: "Tell whether two network files hold the same network, up to the order and signs of units.",
  plan: "Ask a few hundred rows, then estimate what a recovery would cost.",
};

/** Shows the fields of the chosen task and kind; the others are disabled, so that they are not sent. */
function showKind() {
  const allowed = about ? about.tasks[task()] : ["file", "endpoint", "table"];
  for (const choice of form.querySelectorAll("[name=kind]")) {
    choice.closest("label").hidden = !allowed.includes(choice.value);
    if (choice.checked && !allowed.includes(choice.value)) form.elements.kind.value = allowed[0];
  }
  byId("kinds").hidden = allowed.length < 2;
  byId("task-hint").textContent = TASK_WORDS[task()];
  const wanted = (part) =>
    (!part.dataset.kinds || part.dataset.kinds.split(" ").includes(kind())) &&
    (!part.dataset.tasks || part.dataset.tasks.split(" ").includes(task()));
  for (const part of form.querySelectorAll("[data-kinds], [data-tasks]")) part.hidden = !wanted(part);
  for (const field of form.querySelectorAll("input, select, textarea")) {
    if (field.type !== "radio") field.disabled = field.closest("[hidden]") !== null;
  }
  if (kind() in FILE_WORDS) {
    byId("file-label").textContent = task() === "compare" ? "First model file" : FILE_WORDS[kind()];
    if (about) {
      const endings = about.endings[kind()];
      byId("file").accept = endings.join(",");
      byId("other").accept = about.endings.file.join(",");
      byId("file-hint").textContent = `Choose or drop one: ${endings.join(", ")}; at most ${size(about.max_upload_bytes)}`;
    }
  }
}

const endingOf = (file) => file.name.slice(file.name.lastIndexOf(".")).toLowerCase();

/** Takes dropped files as if they had been chosen; a second one goes to the second field of a comparison. */
function takeFiles(files, place) {
  if (!files.length) return;
  if (kind() === "endpoint") form.elements.kind.value = "file";
  if (endingOf(files[0]) === ".csv" && task() === "recover") form.elements.kind.value = "table";
  showKind();
  const put = (field, file) => {
    const chosen = new DataTransfer();
    chosen.items.add(file);
    field.files = chosen.files;
  };
  const first = place === byId("other") ? byId("other") : byId("file");
  put(first, files[0]);
  if (files.length > 1 && task() === "compare") put(byId("other"), files[1]);
  first.focus();
}

function acceptDrops() {
  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  for (const leaving of ["dragleave", "dragend"]) {
    document.addEventListener(leaving, (event) => {
      if (!event.relatedTarget) form.classList.remove("dropping");
    });
  }
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.remove("dropping");
    const box = event.target.closest && event.target.closest(".drop");
    takeFiles(event.dataTransfer.files, box && box.querySelector("input"));
  });
}

function markField(name) {
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-errormessage");
  }
  const field = name && form.elements[name];
  if (!field || !field.setAttribute) return;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-errormessage", "problem");
  const closed = field.closest("details");
  if (closed) closed.open = true;
  field.focus();
}

function send(event) {
  event.preventDefault();
  const chosen = [byId("file"), byId("other")].filter((field) => !field.disabled).flatMap((field) => [...field.files]);
  beginRun(new FormData(form), chosen);
}

function trySample() {
  const fields = new FormData(form);
  fields.set("kind", "sample");
  for (const name of ["file", "other", "url", "http_request", "http_answers", "token_env", "outputs"]) fields.delete(name);
  beginRun(fields, []);
}

async function beginRun(fields, chosen) {
  showProblem(null);
  markField(null);
  const start = byId("start");
  start.disabled = true;
  byId("sending").textContent = "Sending and checking.";
  try {
    const bytes = chosen.reduce((sum, file) => sum + file.size, 0);
    if (about && bytes > about.max_upload_bytes) {
      const most = size(about.max_upload_bytes);
      throw Object.assign(
        new Error(`The file must have at most ${most}. Got ${size(bytes)} instead.`), { field: "file" });
    }
    const run = await ask("/api/runs", { method: "POST", body: fields });
    location.assign(`/runs/${run.id}`);
  } catch (error) {
    showProblem(error);
    markField(error.field);
    byId("problem").scrollIntoView({ block: "nearest" });
  } finally {
    start.disabled = false;
    byId("sending").textContent = "";
  }
}

function line(run) {
  const item = make("li");
  const link = make("a");
  link.href = `/runs/${run.id}`;
  const first = make("span", "", "first");
  first.append(make("span", run.name, "name"), make("span", run.words, `badge ${tone(run)}`));
  const told = [TASK_NAMES[run.task], KIND_WORDS[run.kind], run.summary, moment(run.created)].filter(Boolean).join(", ");
  link.append(first, make("span", told, "hint"));
  item.append(link);
  return item;
}

let shown = "";

/** Renews the list, and only if it changed: whoever is on one of the links stays there. */
async function showRuns() {
  try {
    const { runs } = await ask("/api/runs");
    const news = JSON.stringify(runs);
    if (news !== shown) {
      const focused = document.activeElement && document.activeElement.pathname;
      shown = news;
      byId("runs").replaceChildren(...runs.map(line));
      byId("empty").textContent = "No runs yet. Start one, and it stays listed here.";
      byId("empty").hidden = runs.length > 0;
      const again = focused && [...byId("runs").querySelectorAll("a")].find((a) => a.pathname === focused);
      if (again) again.focus();
    }
    return runs.some((run) => run.active) ? 1000 : 4000;
  } catch (error) {
    byId("empty").textContent = error.message;
    byId("empty").hidden = false;
    shown = "";
    return 2000;
  }
}

async function begin() {
  form.addEventListener("submit", send);
  for (const choice of form.querySelectorAll("[name=kind], [name=task]")) choice.addEventListener("change", showKind);
  byId("try").addEventListener("click", trySample);
  acceptDrops();
  showKind();
  repeatedly(showRuns);
  try {
    about = await ask("/api/about");
  } catch (error) {
    showProblem(error);
    return;
  }
  for (const [field, names] of [["activation", about.activations], ["output_activation", about.output_activations]]) {
    for (const name of names) {
      const option = make("option", name);
      option.value = name;
      byId(field).append(option);
    }
  }
  byId("about").textContent = `unweave ${about.version}. Up to ${about.at_once} runs at a time; further ones wait their turn.`;
  showKind();
}

begin();
