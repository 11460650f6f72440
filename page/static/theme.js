// Dark or light, before anything is drawn: what the reader chose, else what the system has.
"use strict";
try {
  const chosen = localStorage.getItem("kvasir-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is off: the system's colours.
}
