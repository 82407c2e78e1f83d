// The first page: the form, and the list of runs.
import { ask, byId, KIND_WORDS, make, moment, repeatedly, showProblem, size, tone } from "./common.js";

const form = byId("form");
const FILE_WORDS = { file: "Model file", table: "Table of samples" };
let about = null;

const kind = () => form.elements.kind.value;

/** Shows the fields of the chosen kind; the others are disabled, so that they are not sent. */
function showKind() {
  for (const part of form.querySelectorAll("[data-kinds]")) {
    const wanted = part.dataset.kinds.split(" ").includes(kind());
    part.hidden = !wanted;
    for (const field of part.querySelectorAll("input, select, textarea")) field.disabled = !wanted;
  }
  if (kind() in FILE_WORDS) {
    byId("file-label").textContent = FILE_WORDS[kind()];
    if (about) {
      const endings = about.endings[kind()];
      byId("file").accept = endings.join(",");
      byId("file-hint").textContent = `${endings.join(", ")}; at most ${size(about.max_upload_bytes)}`;
    }
  }
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

async function send(event) {
  event.preventDefault();
  showProblem(null);
  markField(null);
  const start = byId("start");
  const chosen = byId("file").files[0];
  start.disabled = true;
  byId("sending").textContent = "Sending and checking.";
  try {
    if (kind() in FILE_WORDS && about && chosen && chosen.size > about.max_upload_bytes) {
      const most = size(about.max_upload_bytes);
      throw Object.assign(
        new Error(`The file must have at most ${most}. Got ${size(chosen.size)} instead.`), { field: "file" });
    }
    const run = await ask("/api/runs", { method: "POST", body: new FormData(form) });
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
  const told = [KIND_WORDS[run.kind], run.summary, moment(run.created)].filter(Boolean).join(", ");
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
  for (const choice of form.querySelectorAll("[name=kind]")) choice.addEventListener("change", showKind);
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
  byId("about").textContent = `unweave ${about.version}. ${about.at_once} runs go at once; others wait.`;
  showKind();
}

begin();
