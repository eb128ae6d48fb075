// What the console's pages do in a browser. Everything but live sliders also works without it.
"use strict";

/** Milliseconds after the last keystroke, or the last move of a slider, until the form's address is asked for. */
const AFTER_KEY = 350;
const AFTER_MOVE = 40;

/** The page at an address as a document, with whether it is what was asked for. */
async function get(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { page, ok: answer.ok };
}

/** Put an element of a fetched page in the place of the one of the same id; what was unfolded stays so. */
function swap(old, fetched) {
  for (const open of old.querySelectorAll("details[id][open]")) {
    fetched.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
  }
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceWith(fetched);
  if (focused) document.getElementById(focused)?.focus();
  look(fetched);
}

/** A sentence in the place of what could not be fetched. */
function complain(place, words) {
  const note = document.createElement("p");
  note.className = "note trouble";
  note.role = "alert";
  note.textContent = words;
  place.replaceChildren(note);
}

// 1. <form data-live="ID ID...">: elements with these ids follow the form's fields.

// What is empty or usual (data-default) is left out of addresses, however the form is sent.
document.addEventListener("formdata", ({ target: form, formData }) => {
  if (form.method !== "get") return;
  for (const name of new Set(formData.keys())) {
    const usual = form.querySelector(`[name="${CSS.escape(name)}"][data-default]`)?.dataset.default;
    const kept = formData.getAll(name).filter((value) => value !== "" && value !== usual);
    formData.delete(name);
    for (const value of kept) formData.append(name, value);
  }
});

function addressOf(form) {
  const query = new URLSearchParams(new FormData(form)).toString();
  const place = form.getAttribute("action") || location.pathname;
  return query ? `${place}?${query}` : place;
}

/** What of a form is under way: one request at a time, and the newest state last. */
const underWay = new WeakMap();

async function follow(form) {
  if (underWay.has(form)) {
    underWay.set(form, "again");
    return;
  }
  do {
    underWay.set(form, "once");
    await show(form, addressOf(form));
  } while (underWay.get(form) === "again");
  underWay.delete(form);
}

async function show(form, address) {
  const places = form.dataset.live.split(/\s+/).map((id) => document.getElementById(id)).filter(Boolean);
  if (!places.length) return;
  places[0].setAttribute("aria-busy", "true");
  try {
    const { page } = await get(address);
    if (page.querySelector("main[data-refresh]")) return location.assign(address);
    const found = places.map((place) => page.getElementById(place.id));
    if (!found[0]) return complain(places[0], page.querySelector("main .trouble")?.textContent ?? page.title);
    const canonical = found.find((element) => element?.dataset.address)?.dataset.address;
    places.forEach((place, n) => {
      // A slider that is being moved stays what it is; Chromium lets go of it if another one beside it is replaced.
      if (found[n] && !(n && (held || place.contains(document.activeElement)))) swap(place, found[n]);
    });
    history.replaceState(null, "", canonical ?? address);
  } catch {
    complain(places[0], "The console does not respond: check that `langshift serve` is still running.");
  } finally {
    places[0].removeAttribute("aria-busy");
  }
}

/** Whether a slider is being drawn with a pointer. */
let held = false;
for (const kind of ["pointerdown", "pointerup", "pointercancel"]) {
  document.addEventListener(kind, ({ target }) => {
    held = kind === "pointerdown" && target.matches("input[type=range]");
  });
}

const waiting = new WeakMap();

document.addEventListener("input", (event) => {
  const field = event.target;
  for (const output of field.id ? document.querySelectorAll(`output[for~="${CSS.escape(field.id)}"]`) : []) {
    output.value = field.value;
  }
  const form = field.form;
  if (!form?.dataset.live || event.isComposing || !form.checkValidity()) return;
  clearTimeout(waiting.get(form));
  const typed = field.matches("textarea, input:is([type=search], [type=text], [type=number])");
  waiting.set(form, setTimeout(follow, typed ? AFTER_KEY : AFTER_MOVE, form));
});

// 2. <main data-refresh="SECONDS">: a page that waits for the cluster, asked for again until it is what was asked for.

function refresh(main) {
  setTimeout(async () => {
    try {
      const { page } = await get(location.href);
      const fetched = page.querySelector("main[data-refresh]");
      if (!fetched) return location.reload();
      swap(main, fetched);
    } catch {
      refresh(main);
    }
  }, 1000 * Number(main.dataset.refresh));
}

// 3. <a data-dialog>: the page it leads to, in a dialog over this one; Escape closes it, and focus comes back.

function dialog() {
  const found = document.querySelector("dialog.page");
  if (found) return found;
  const made = document.createElement("dialog");
  made.className = "page";
  made.innerHTML = '<form method="dialog"><button class="close">Close</button></form><div tabindex="-1"></div>';
  made.addEventListener("click", ({ target }) => target === made && made.close());
  return document.body.appendChild(made);
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[data-dialog]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  try {
    const { page } = await get(link.href);
    const over = dialog();
    over.lastElementChild.replaceChildren(...page.querySelector("main").childNodes);
    over.setAttribute("aria-label", over.querySelector("h1")?.textContent.trim() ?? page.title);
    if (!over.open) over.showModal();
    over.scrollTop = 0;
  } catch {
    location.assign(link.href);
  }
});

// 4. <... data-prefetch="URL">: fetched once, so that what comes next is quick.

const prefetched = new Set();

function prefetch({ dataset: { prefetch: address } }) {
  if (prefetched.has(address)) return;
  prefetched.add(address);
  fetch(address, { priority: "low" }).catch(() => prefetched.delete(address));
}

// 5. <button aria-keyshortcuts="KEY">: pressed by that key, once for each page and not while it is held down.

let chosen = false;
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, dialog")) return;
  const key = event.key.toLowerCase();
  const button = [...document.querySelectorAll("button[aria-keyshortcuts]")].find(
    (one) => one.getAttribute("aria-keyshortcuts").toLowerCase() === key,
  );
  if (!button) return;
  event.preventDefault();
  if (!chosen) button.click();
  chosen = true;
});
addEventListener("pageshow", () => { chosen = false; });

/** Begin what an element and those in it ask for. */
function look(root) {
  const all = (what) => [...(root.matches?.(what) ? [root] : []), ...root.querySelectorAll(what)];
  all("main[data-refresh]").forEach(refresh);
  all("[data-prefetch]").forEach(prefetch);
}

look(document);
