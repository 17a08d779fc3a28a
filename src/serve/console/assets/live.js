// Parts of a page that follow what happens, without reloading it: the same page is fetched again, and
// what differs is changed in place.

/** Says times in the reader's words; the exact one stays as the title. */
export function tellTimes(root) {
  const words = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: 'auto' });
  for (const time of root.querySelectorAll('time[datetime]')) {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const [size, unit] = [[86_400, 'day'], [3_600, 'hour'], [60, 'minute'], [1, 'second']]
      .find(([size]) => Math.abs(seconds) >= size) ?? [1, 'second'];
    const text = words.format(Math.trunc(seconds / size), unit);
    if (time.textContent !== text) time.textContent = text;
  }
}

/** Makes one node like another, and leaves alone what is the same: focus, selection, what is open. */
export function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  // What was fetched into a branch isn't in the page that was fetched.
  if (from.dataset.loaded) return;
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== 'open') from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    const kept = name === 'open' || (name === 'hidden' && from.matches('.copy'));
    if (!kept && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  const [old, fresh] = [[...from.childNodes], [...to.childNodes]];
  fresh.forEach((node, at) => (at < old.length ? morph(old[at], node) : from.append(node)));
  old.slice(fresh.length).forEach(node => node.remove());
}

/** Fetches a page of ours; nothing when it can't be had. */
export async function fetchPage(address, signal) {
  const response = await fetch(address, { headers: { accept: 'text/html' }, signal });
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  tellTimes(page);
  return page;
}

/** Puts what another page has under an id in the place of what this one has. */
export function takeOver(page, id) {
  const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
  if (!old || !fresh) return;
  morph(old, fresh);
  document.getElementById(id).dispatchEvent(new CustomEvent('resdex:changed', { bubbles: true }));
}

const REST = 400;
const waiting = new Map();

/** Brings a part up to date: at once, then at most so often, the last time never left out. */
function refresh(id) {
  const state = waiting.get(id) ?? { busy: false, again: false };
  waiting.set(id, state);
  if (state.busy) {
    state.again = true;
    return;
  }
  state.busy = true;
  state.again = false;
  fetchPage(location.href)
    .then(page => takeOver(page, id))
    // The daemon may be restarting; the events come back when it does.
    .catch(() => {})
    .finally(() => setTimeout(() => {
      state.busy = false;
      if (state.again) refresh(id);
    }, REST));
}

const followers = [...document.querySelectorAll('[data-follow]')];

function happened(name, data) {
  for (const follower of followers) {
    const part = document.getElementById(follower.id);
    if (!part?.dataset.follow.split(' ').includes(name)) continue;
    if (part.dataset.uri && part.dataset.uri !== data.uri) continue;
    if (name === 'progress') {
      const bar = [...part.querySelectorAll('progress')].find(bar => bar.dataset.server === data.server);
      if (bar) [bar.max, bar.value] = [Math.max(data.total, 1), data.done];
    }
    refresh(part.id);
  }
}

let source;

/** Listens while somebody looks: a browser has few connections to one host. */
function listen() {
  source?.close();
  source = undefined;
  if (document.hidden || followers.length === 0) return;
  source = new EventSource('/v1/events');
  source.onopen = () => {
    document.documentElement.dataset.listening = 'yes';
    // What happened since the page was made, or while the connection was gone.
    followers.forEach(part => refresh(part.id));
  };
  const names = new Set(followers.flatMap(part => part.dataset.follow.split(' ')));
  for (const name of names) {
    // An error of the connection has the same name, and no data.
    source.addEventListener(name, event => event.data && happened(name, JSON.parse(event.data)));
  }
}

listen();
document.addEventListener('visibilitychange', listen);
addEventListener('pagehide', () => source?.close());
addEventListener('pageshow', event => event.persisted && listen());

for (const part of document.querySelectorAll('[data-every]')) {
  setInterval(() => document.hidden || refresh(part.id), Number(part.dataset.every) * 1_000);
}
