// Dark or light: what the system prefers, until somebody chooses.

const system = matchMedia("(prefers-color-scheme: dark)");
const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };

function apply(theme) {
  document.documentElement.dataset.theme = theme;
}

export function startTheme(button) {
  apply(read() || (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => read() || apply(system.matches ? "dark" : "light"));
  button.addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    apply(theme);
    try { localStorage.setItem("theme", theme); } catch { /* a private window */ }
  });
}
