"use strict";
// Copy buttons, values under the cursor, and everything unfolded on paper. The page is whole
// without any of it.
for (const button of document.querySelectorAll(".command button")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent.trim());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Failed";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

for (const sheet of document.querySelectorAll(".sheet")) {
  const tip = sheet.querySelector(".tip");
  let shown = null;
  const hide = () => {
    shown?.classList.remove("shown");
    shown = null;
    tip.hidden = true;
  };
  const show = (event) => {
    const svg = event.target.closest("svg");
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    let near = null, least = Infinity;
    for (const line of svg.querySelectorAll(".cursor line")) {
      const far = Math.abs(line.x1.baseVal.value - at);
      if (far < least) [near, least] = [line, far];
    }
    if (!near) return;
    if (near !== shown) {
      hide();
      shown = near;
      near.classList.add("shown");
      tip.textContent = near.dataset.tip;
      tip.hidden = false;
    }
    const x = (near.x1.baseVal.value / svg.viewBox.baseVal.width) * box.width;
    const left = x + 12 + tip.offsetWidth > box.width ? x - 12 - tip.offsetWidth : x + 12;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.max(0, event.clientY - box.top - tip.offsetHeight - 8)}px`;
  };
  sheet.addEventListener("pointermove", show);
  sheet.addEventListener("pointerdown", show);
  sheet.addEventListener("pointerleave", hide);
}

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open]):not(.long)")) {
    details.open = true;
    details.dataset.printed = "";
  }
});
addEventListener("afterprint", () => {
  for (const details of document.querySelectorAll("details[data-printed]")) {
    details.open = false;
    delete details.dataset.printed;
  }
});
