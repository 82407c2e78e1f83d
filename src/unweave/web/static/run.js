// The page of one run: progress while it goes, then the result.
import { ask, byId, count, figure, KIND_WORDS, make, moment, repeatedly, seconds, showProblem, size, TASK_NAMES, tone } from "./common.js";

const id = location.pathname.split("/")[2];
const api = `/api/runs/${encodeURIComponent(id)}`;
const PAUSE = 500;
const PAUSE_WITHOUT_SERVER = 1500;
let announced = "";
let following = false;

function announce(text) {
  if (text !== announced) byId("announce").textContent = announced = text;
}

function pairs(list, entries) {
  list.replaceChildren(
    ...entries.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([word, value]) => {
      const box = make("div");
      box.append(make("dt", word), make("dd", String(value)));
      return box;
    }),
  );
}

const several = (value, word) => (value ? `${count(value)} ${word}${value === 1 ? "" : "s"}` : "");

function showTitle(run) {
  document.title = `${run.name} - unweave`;
  byId("name").textContent = run.name;
  const found = run.found;
  byId("about-run").textContent = [
    TASK_NAMES[run.task], KIND_WORDS[run.kind], several(found.inputs, "input"), several(found.outputs, "output"), several(found.rows, "row"),
    `started ${moment(run.created)}`, run.attempt > 1 ? `attempt ${run.attempt}` : "",
  ].filter(Boolean).join(", ");
  byId("cancel").hidden = !run.can_cancel;
  byId("cancel").disabled = run.stopping;
  byId("cancel").textContent = run.stopping ? "Cancelling" : "Cancel";
  byId("resume").hidden = !run.can_resume;
  byId("resume").textContent = run.keeps_answers && run.attempt ? "Resume" : "Start again";
  byId("delete").hidden = !run.can_delete;
  pairs(byId("options"), run.options);
}

function timeLeft(progress) {
  const { done, total, stage_seconds: spent } = progress;
  if (!total || done <= 0 || done >= total || spent < 1) return "";
  return `about ${seconds((spent * (total - done)) / done)}`;
}

function showProgress(run) {
  byId("going").hidden = !run.active;
  if (!run.active) return;
  const progress = run.progress;
  const waiting = run.waiting_before ? `Waiting, ${run.waiting_before} ahead` : "Waiting for its turn";
  const stage = run.status === "QUEUED" ? waiting : run.stopping ? "Cancelling" : progress ? progress.stage : "Starting";
  byId("stage").textContent = stage;
  announce(stage);
  const bar = byId("bar");
  const known = progress && progress.total && run.status === "RUNNING";
  if (known) {
    bar.max = progress.total;
    bar.value = Math.min(progress.done, progress.total);
  } else {
    bar.removeAttribute("value");
  }
  bar.hidden = byId("going-facts").hidden = run.status === "QUEUED";
  byId("amount").textContent = known ? `${count(progress.done)} of ${count(progress.total)} ${progress.unit}` : "";
  byId("queries").textContent = count(progress ? progress.queries : 0);
  byId("elapsed").textContent = seconds(run.elapsed);
  byId("left").textContent = progress ? timeLeft(progress) : "";
  byId("left-fact").hidden = !byId("left").textContent;
  const before = progress ? progress.stages.slice(0, -1).map((entry) => entry.name) : [];
  byId("stages").textContent = before.length ? `Done: ${before.slice(-12).join(", ")}` : "";
}

function showResult(run) {
  byId("ended").hidden = run.active;
  if (run.active) {
    for (const part of ["downloads", "checks", "history", "table-card", "gallery"]) byId(part).hidden = true;
    return;
  }
  const facts = run.recovery;
  const verdict = byId("verdict");
  const heading = run.words.charAt(0).toUpperCase() + run.words.slice(1);
  verdict.textContent = heading;
  verdict.className = `verdict ${tone(run)}`;
  announce(heading);
  byId("explanation").textContent = run.explanation;
  const sentences = [run.message, facts && facts.message, run.audit && run.audit.verdict].filter(Boolean);
  byId("message").textContent = sentences.map((text) => text.charAt(0).toUpperCase() + text.slice(1)).join(" ");
  byId("message").hidden = sentences.length === 0;
  byId("recommendation").textContent = run.audit ? `Recommendation: ${run.audit.recommendation}` : "";
  byId("recommendation").hidden = !run.audit;
  pairs(byId("facts"), factsOf(run, facts));
  byId("report").hidden = !run.report;
  byId("report").textContent = run.task === "audit" ? "Open the audit" : "Open the report";
  byId("report").href = `/runs/${encodeURIComponent(id)}/report`;
  const told = run.audit ? [...run.audit.details, ...run.audit.notes] : run.plan ? run.plan.assumptions : [];
  const notes = [...(facts ? facts.notes : []), ...told, ...run.problems];
  byId("notes").replaceChildren(...notes.map((note) => make("li", note)));
  showFiles(run);
  showTables(facts);
  showTable(run);
  showPictures(run);
}

function factsOf(run, facts) {
  if (facts) {
    return [
      ["Network", facts.architecture || "none"],
      ["Parameters", count(facts.n_parameters)],
      ["Error on fresh rows", figure(facts.error)],
      ["Queries", count(facts.queries)],
      ["Queries per parameter", facts.queries_per_parameter ? figure(facts.queries_per_parameter) : ""],
      ["Time", seconds(facts.seconds)],
    ];
  }
  if (run.audit) {
    return [["Queries to the target", count(run.audit.target_queries)], ["Time", seconds(run.audit.seconds)]];
  }
  if (run.comparison) {
    const found = run.comparison;
    return [
      ["First", found.first], ["Second", found.second], ["Why", found.reason],
      ["Parameter error", found.reason ? "" : figure(found.parameter_error)],
      ["Same up to", figure(found.tolerance)], ["Function error", figure(found.function_error)],
    ];
  }
  if (run.plan) {
    const made = run.plan;
    return [
      ["Inputs", count(made.inputs)], ["Outputs", count(made.outputs)], ["Answers", made.precision],
      ["Rows asked", count(made.sent)], ["Time", seconds(run.elapsed)],
    ];
  }
  return [["Time", seconds(run.elapsed)]];
}

/** An audit's or a plan's table: headings, then rows of [text, class, label]. */
function showTable(run) {
  const made = run.audit && run.audit.summaries.length ? auditTable(run.audit) : run.plan ? planTable(run.plan) : null;
  byId("table-card").hidden = !made;
  if (!made) return;
  byId("table-title").textContent = made.title;
  byId("table-head").replaceChildren(...made.headings.map((text, index) => {
    const cell = make("th", text, index ? "number" : "");
    cell.scope = "col";
    return cell;
  }));
  byId("table-rows").replaceChildren(...made.rows.map((cells) => row(cells)));
}

function auditTable(audit) {
  const headings = ["Published", "First network", "Function", "Weights", "Exact"];
  const after = (value, about) => (value === null ? "not reached" : `${about ? "about " : ""}${count(value)}`);
  const rows = audit.summaries.map((entry) => [
    [entry.label],
    ...[entry.first_network, entry.function_after].map((value, i) => [after(value), "number", headings[i + 1]]),
    [after(entry.alarm_after, entry.alarm_predicted), "number", headings[3]],
    [after(entry.exact_after), "number", headings[4]],
  ]);
  return { title: "What leaks, after how many queries", headings, rows };
}

function planTable(made) {
  const headings = ["Method", "Hidden", "Parameters", "Rows", "Seconds", "MB"];
  const rows = made.methods.filter((entry) => entry.tried).map((entry) => [
    [entry.method], [entry.hidden.join("-") || "none", "number", "hidden"],
    [count(entry.parameters), "number", "parameters"], [count(entry.rows), "number", "rows"],
    [figure(entry.seconds), "number", "seconds"], [figure(entry.megabytes), "number", "MB"],
  ]);
  return rows.length ? { title: "Methods that would be tried, in this order", headings, rows } : null;
}

function showPictures(run) {
  byId("gallery").hidden = run.pictures.length === 0;
  byId("pictures").replaceChildren(...run.pictures.map((picture) => {
    const figure = make("figure", "", picture.wide ? "wide" : "");
    const image = document.createElement("img");
    image.src = `/runs/${encodeURIComponent(id)}/pictures/${encodeURIComponent(picture.name)}`;
    image.alt = picture.title;
    image.loading = "lazy";
    const box = make("div", "", "scroll");
    box.append(image);
    figure.append(make("h3", picture.title), box, make("figcaption", picture.caption, "hint"));
    return figure;
  }));
}

function showFiles(run) {
  byId("downloads").hidden = run.files.length === 0;
  byId("files").replaceChildren(...run.files.map((file) => {
    const item = make("li");
    const link = make("a", file.label);
    link.href = `${api}/files/${file.name}`;
    link.download = file.name;
    item.append(link, make("span", size(file.bytes), "hint"));
    return item;
  }));
}

function row(cells) {
  const line = make("tr");
  line.append(...cells.map(([text, className, label], index) => {
    const cell = make(index ? "td" : "th", text, className || "");
    if (label && text) cell.dataset.label = label;
    if (!index) cell.scope = "row";
    return cell;
  }));
  return line;
}

const holds = { true: "yes", false: "no", null: "" };

function showTables(facts) {
  const checks = facts ? facts.certificate : [];
  byId("checks").hidden = checks.length === 0;
  byId("check-rows").replaceChildren(...checks.map((check) => row([
    [check.name], [figure(check.value), "number", "value"],
    [check.threshold === null ? "" : figure(check.threshold), "number", "threshold"],
    [holds[String(check.holds)], check.holds === false ? "no" : "", "holds"], [check.implies],
  ])));
  const stages = facts ? facts.stages : [];
  byId("history").hidden = stages.length === 0;
  byId("stage-rows").replaceChildren(...stages.map((stage) => row([
    [stage.name], [stage.seconds.toFixed(2), "number"], [count(stage.queries), "number"],
  ])));
}

function show(run) {
  byId("content").hidden = false;
  showTitle(run);
  showProgress(run);
  showResult(run);
}

/** Polls until the run has ended. If the server does not answer, polls again. */
function follow() {
  if (following) return;
  following = true;
  repeatedly(async () => {
    try {
      const run = await ask(api);
      showProblem(null);
      show(run);
      following = run.active;
      return run.active ? PAUSE : null;
    } catch (error) {
      showProblem(error);
      following = error.status === 0;
      return following ? PAUSE_WITHOUT_SERVER : null;
    }
  });
}

async function act(verb) {
  try {
    const run = await ask(`${api}/${verb}`, { method: "POST" });
    if (verb === "delete") {
      location.assign("/");
      return;
    }
    showProblem(null);
    show(run);
    follow();
  } catch (error) {
    showProblem(error);
    follow();
  }
}

byId("cancel").addEventListener("click", () => act("cancel"));
byId("resume").addEventListener("click", () => act("resume"));
byId("delete").addEventListener("click", () => byId("confirm").showModal());
byId("confirm").addEventListener("close", () => {
  if (byId("confirm").returnValue === "yes") act("delete");
});
follow();
