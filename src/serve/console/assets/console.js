// What makes the pages quicker to use. Each works without: links are links, forms are forms.

import { tellTimes } from './live.js';
import './forms.js';

tellTimes(document);
setInterval(() => tellTimes(document), 20_000);

// Copy buttons are of no use without this, so they show only now.
function showCopyButtons(root) {
  for (const button of root.querySelectorAll('.copy[hidden]')) button.hidden = false;
}
showCopyButtons(document);
document.addEventListener('resdex:changed', event => showCopyButtons(event.target));

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // There is no clipboard on plain HTTP from another machine.
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

document.addEventListener('click', async event => {
  const button = event.target.closest?.('button[data-copy]');
  if (!button) return;
  await copy(button.dataset.copy);
  const label = button.textContent;
  button.textContent = document.body.dataset.copied;
  setTimeout(() => { button.textContent = label; }, 1_500);
});

// `/` leads to the first box, as in many places.
document.addEventListener('keydown', event => {
  const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const box = document.querySelector('main input[type=search]');
  if (box) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});
