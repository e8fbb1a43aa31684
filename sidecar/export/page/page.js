"use strict";
// Fetches the live part of the page and swaps the sections that changed, by id. Focus, scroll
// and opened details stay where they are. When the sidecar is gone the figures stay, greyed, and
// the page says since when.
(() => {
  const every = Number(document.body.dataset.refresh) * 1000;
  const lost = document.getElementById("lost");
  const shown = new Map();
  let since = null;

  function swap(next) {
    const now = document.getElementById(next.id);
    if (!now) { // a plot of something that was not there when the page was loaded
      if (next.matches("figure")) document.querySelector(".grid").append(next);
      return;
    }
    if (shown.get(next.id) === next.innerHTML) return;
    shown.set(next.id, next.innerHTML);
    for (const open of now.querySelectorAll("details[open]")) {
      next.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
    }
    const focused = now.contains(document.activeElement) ? document.activeElement.id : "";
    now.className = next.className;
    now.hidden = next.hidden;
    now.replaceChildren(...next.childNodes);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  function report(failure) {
    if (!failure) since = null;
    else since ??= new Date();
    document.body.classList.toggle("stale", since !== null);
    const text = since ? `Connection to the sidecar lost since ${since.toISOString().slice(11, 19)} UTC. The figures below are from then.` : "";
    if (lost.textContent !== text) lost.textContent = text;
    lost.hidden = since === null;
  }

  async function update() {
    try {
      const answer = await fetch("live", { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const live = new DOMParser().parseFromString(await answer.text(), "text/html");
      live.querySelectorAll("[data-live]").forEach(swap);
      report(null);
    } catch (failure) {
      report(failure);
    }
  }

  async function loop() {
    if (!document.hidden) await update();
    setTimeout(loop, every);
  }

  setTimeout(loop, every);
})();
