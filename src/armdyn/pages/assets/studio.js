// The studio's toolbar: sends files to the Python server, shows the progress of jobs, what was identified, and downloads.
"use strict";
(() => {
  const { $, el } = Page, token = JSON.parse($("token").textContent);
  const ROBOTS = /\.(urdf|xacro|xml|mjcf|toml)$/i;
  if (!document.documentElement.dataset.theme) Page.startTheme(null);
  const ask = (path, options = {}) => fetch(path, { ...options, headers: { "X-Token": token } });
  const say = (text, part = null) => {
    $("job").textContent = text; $("progress").hidden = part === null;
    if (part !== null) $("progress").value = part;
  };
  const TOLD = "armdyn-studio"; // what to say after the page was loaded again
  let shown = null; // the arm that this page shows: "file", or the log it was identified from

  const of = (job) => (job.identified && job.identified.adopted ? job.identified.source : "file");
  async function watch() {
    for (;;) {
      const job = await (await ask("/job")).json();
      if (job.state === "running") { say(job.text, job.part); await new Promise((done) => setTimeout(done, 150)); continue; }
      document.body.dataset.ready = job.state === "failed" && !job.ready ? "failed" : document.body.dataset.ready || "yes";
      if (job.state === "failed") { say(`failed: ${job.text}`); identified(job.identified); return; }
      if (reload || of(job) !== shown) { sessionStorage.setItem(TOLD, job.text); location.reload(); return; }
      say(job.text); identified(job.identified);
      return;
    }
  }
  let reload = false;
  async function send(path, body, again = false) {
    const answer = await ask(path, { method: "POST", body });
    if (!answer.ok) { say(`failed: ${await answer.text()}`); return; }
    reload = again; await watch();
  }

  // The identified arm as a chip: it is the arm, or a proposal with its doubts.
  function identified(found) {
    const report = () => el("a", { href: `/identified?token=${encodeURIComponent(token)}`, target: "_blank", rel: "noopener" }, "Identification report");
    if (!found) { $("identified").replaceChildren(); return; }
    const act = (text, path) => el("button", { type: "button", onclick: () => send(path, "", true) }, text);
    $("identified").replaceChildren(...(found.adopted
      ? [el("span", { class: "chip verdict" }, `identified from ${found.source}`), act("Back to file", "/back"), report()]
      : [el("span", { class: "chip doubtful", title: found.doubts.join("\n") }, `proposal from ${found.source}: ${found.doubts.length} doubt${found.doubts.length > 1 ? "s" : ""}`), act("Use it anyway", "/adopt"), act("Discard", "/back"), report()]));
  }
  async function take(file) {
    say(`sending ${file.name}`, 0);
    const robot = ROBOTS.test(file.name);
    await send(`/${robot ? "load" : "identify"}?name=${encodeURIComponent(file.name)}`, file, robot);
  }
  async function save(path, name) {
    say("writing", 0.5);
    const answer = await ask(path);
    if (!answer.ok) { say(`failed: ${await answer.text()}`); return; }
    const saved = /filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition") || "")?.[1] || name;
    Page.download(saved, await answer.blob()); say(`${saved} is in your downloads`);
  }

  $("file").addEventListener("change", () => { if ($("file").files.length) take($("file").files[0]); });
  $("emit").addEventListener("click", () => save("/emit", "c.zip"));
  $("report").addEventListener("click", () => save("/report", "report.html"));
  for (const button of document.querySelectorAll("[data-robot]")) button.addEventListener("click", () => send(`/catalogue?name=${encodeURIComponent(button.dataset.robot)}`, "", true));
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault(); document.body.classList.remove("dropping");
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
  window.studio = { take, send };
  const empty = !$("arm-view");
  for (const button of [$("emit"), $("report")]) button.disabled = empty;
  const told = sessionStorage.getItem(TOLD);
  if (told) { say(told); sessionStorage.removeItem(TOLD); }
  ask("/job").then((answer) => answer.json()).then((job) => {
    shown = of(job); identified(job.identified);
    if (!told && job.identified) say(job.identified.words);
    if (job.state === "running") { reload = empty; watch(); } else if (empty && job.ready) location.reload();
    else if (empty) { if (job.state === "failed") say(`failed: ${job.text}`); document.body.dataset.ready = job.state === "failed" ? "failed" : "yes"; }
  });
})();
