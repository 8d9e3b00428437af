// The studio's toolbar: sends dropped files to the Python server, shows the progress of jobs, and downloads results.
"use strict";
(() => {
  const { $, el } = Page, token = JSON.parse($("token").textContent);
  const ROBOTS = /\.(urdf|xml|mjcf|toml)$/i;
  if (!document.documentElement.dataset.theme) Page.startTheme(null);
  const ask = (path, options = {}) => fetch(path, { ...options, headers: { "X-Token": token } });
  const say = (text, part = null) => {
    $("job").textContent = text; $("progress").hidden = part === null;
    if (part !== null) $("progress").value = part;
  };

  async function watch(reload) {
    for (;;) {
      const job = await (await ask("/job")).json();
      if (job.state === "running") { say(job.text, job.part); await new Promise((done) => setTimeout(done, 150)); continue; }
      if (job.state === "failed") say(`failed: ${job.text}`);
      else if (reload) location.reload();
      else { say(job.text); identified(job.identified); }
      document.body.dataset.ready = job.state === "failed" ? "failed" : document.body.dataset.ready || "yes";
      return;
    }
  }
  function identified(there) {
    if (there) $("identified").replaceChildren(el("a", { href: `/identified?token=${encodeURIComponent(token)}`, target: "_blank", rel: "noopener" }, "Identification report"));
  }
  async function take(file) {
    const robot = ROBOTS.test(file.name);
    say(`sending ${file.name}`, 0);
    const answer = await ask(`/${robot ? "load" : "identify"}?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    if (!answer.ok) say(`failed: ${await answer.text()}`); else await watch(robot);
  }
  async function save(path, name) {
    say("writing", 0.5);
    const answer = await ask(path);
    if (!answer.ok) { say(`failed: ${await answer.text()}`); return; }
    Page.download(/filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition") || "")?.[1] || name, await answer.blob());
    say("saved to your downloads");
  }

  $("file").addEventListener("change", () => { if ($("file").files.length) take($("file").files[0]); });
  $("emit").addEventListener("click", () => save("/emit", "c.zip"));
  $("report").addEventListener("click", () => save("/report", "report.html"));
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault(); document.body.classList.remove("dropping");
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
  window.studio = { take };
  const waiting = !$("arm-view");
  for (const button of [$("emit"), $("report")]) button.disabled = waiting;
  ask("/job").then((answer) => answer.json()).then((job) => {
    identified(job.identified);
    if (waiting || job.state === "running") watch(waiting);
  });
})();
