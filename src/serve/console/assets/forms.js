// Forms that answer while one types, branches that open in place, fields that their server completes.

import { fetchPage, takeOver, morph } from './live.js';

const PAUSE = 120;

function debounced(action) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), PAUSE);
  };
}

function addressOf(form) {
  const fields = [...new FormData(form)].filter(([, value]) => value !== '');
  const query = new URLSearchParams(fields).toString();
  return form.getAttribute('action') + (query && `?${query}`);
}

for (const form of document.querySelectorAll('form[data-as-you-type]')) {
  let asked;
  const ask = async () => {
    asked?.abort();
    asked = new AbortController();
    const address = addressOf(form);
    try {
      const page = await fetchPage(address, asked.signal);
      takeOver(page, form.dataset.asYouType);
      // The way to the other language leads to what is shown now.
      const [old, fresh] = [document.querySelector('.switch'), page.querySelector('.switch')];
      if (old && fresh) morph(old, fresh);
      history.replaceState(null, '', address);
    } catch (error) {
      if (error.name !== 'AbortError') form.submit();
    }
  };
  const soon = debounced(ask);
  form.addEventListener('input', event => !event.isComposing && soon());
  form.addEventListener('compositionend', soon);
}

// Branches of the tree.

async function fetchBranch(address) {
  const response = await fetch(address, { headers: { accept: 'text/html' } });
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  return [...page.body.childNodes];
}

document.addEventListener('toggle', async event => {
  const branch = event.target;
  if (!branch.dataset?.branch || !branch.open || branch.dataset.loaded) return;
  branch.dataset.loaded = 'yes';
  try {
    const level = await fetchBranch(branch.dataset.branch);
    // In the place of the way to its page.
    branch.querySelector(':scope > p')?.remove();
    branch.append(...level);
  } catch {
    delete branch.dataset.loaded;
    branch.open = false;
  }
}, true);

document.addEventListener('click', async event => {
  const more = event.target.closest?.('a[data-more]');
  if (!more || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const level = await fetchBranch(more.dataset.more);
  const items = level.flatMap(node => (node.nodeName === 'UL' ? [...node.children] : []));
  more.closest('li').replaceWith(...items);
  items[0]?.querySelector('a, summary')?.focus();
});

// Fields of a template.

for (const form of document.querySelectorAll('form[data-complete-template]')) {
  const fields = [...form.querySelectorAll('input[data-variable]')];
  const complete = async field => {
    const values = Object.fromEntries(fields.map(each => [each.dataset.variable, each.value]));
    const response = await fetch('/v1/complete', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        server: form.dataset.completeServer,
        uri_template: form.dataset.completeTemplate,
        variable: field.dataset.variable,
        value: field.value,
        values,
      }),
    });
    if (!response.ok) return;
    const options = (await response.json()).values.map(value => {
      const option = document.createElement('option');
      option.value = value;
      return option;
    });
    document.getElementById(`list-${field.dataset.variable}`).replaceChildren(...options);
  };
  for (const field of fields) {
    const soon = debounced(() => complete(field).catch(() => {}));
    field.addEventListener('focus', () => complete(field).catch(() => {}));
    field.addEventListener('input', soon);
  }
}
