"""How a page looks in a browser: contrasts, dark mode, and what has to be scrolled sideways."""

from __future__ import annotations

import numpy as np

LEAST_CONTRAST = 4.5
COLOURS = """
const shade = value => {
  const c = value.match(/[\\d.]+/g).map(Number);
  return c.length > 3 && c[3] === 0 ? null : c.slice(0, 3); };
const background = node => { for (let n = node; n; n = n.parentElement) {
  const c = shade(getComputedStyle(n).backgroundColor); if (c) return c; } return [255, 255, 255]; };
const found = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim());
  if (!own) continue;
  const style = getComputedStyle(node);
  const ink = node.closest('svg') ? shade(style.fill) : shade(style.color);
  found.push([node.textContent.trim().slice(0, 40), ink, background(node), parseFloat(style.fontSize)]);
}
return found;
"""

SCROLLED = """
return [...document.querySelectorAll('.wide:has(table)')].filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => box.textContent.trim().slice(0, 60));
"""
"""Tables that have to be scrolled sideways."""
PAPER = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


def luminance(colour):
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def emulate(browser, **features):
    told = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})


def check_colours(browser):
    for text, ink, behind, size in browser.execute_script(COLOURS):
        assert contrast(ink, behind) >= LEAST_CONTRAST, text
        assert size >= 9, text
