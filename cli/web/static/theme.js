// Light, dark or as the system says; kept for the next visit.

const ORDER = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen = "auto";

export function setTheme(name, button) {
  chosen = ORDER.includes(name) ? name : "auto";
  try {
    localStorage.setItem("theme", chosen);
  } catch { /* storage is off: the choice lasts for this page */ }
  document.documentElement.dataset.theme = chosen === "auto" ? (system.matches ? "dark" : "light") : chosen;
  if (!button) return;
  button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[chosen];
  button.setAttribute("aria-label", `Colours: ${button.textContent}`);
}

export function wireTheme(button) {
  let before = null;
  try {
    before = localStorage.getItem("theme");
  } catch { /* as above */ }
  setTheme(before ?? "auto", button);
  button?.addEventListener("click", () => setTheme(ORDER[(ORDER.indexOf(chosen) + 1) % 3], button));
  system.addEventListener("change", () => setTheme(chosen, button));
}
