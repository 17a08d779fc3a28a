// The console in a browser: each view is used as a person would, against a daemon with real servers.
//
// RESDEX_SUITE is JSON: the one-time link, a scope's token, where the modules are, and the folders in
// which this changes what the servers hold. Nothing waits for a fixed time.

import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync, appendFileSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';

const told = JSON.parse(process.env.RESDEX_SUITE);
const require = createRequire(join(told.modules, 'suite.cjs'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const origin = new URL(told.link).origin;
// Generous: the machine may be busy. Nothing waits this long unless it is broken.
const PATIENCE = 120_000;

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--disable-gpu'] });

/** Requests that left the console, and complaints of the browser: both stay empty. */
const left = [];
const complaints = [];

async function visitor(options = {}) {
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  context.setDefaultNavigationTimeout(PATIENCE);
  context.on('request', request => {
    const url = new URL(request.url());
    if (url.origin !== origin && !['data:', 'about:'].includes(url.protocol)) left.push(request.url());
  });
  context.on('console', message => {
    // What a test provokes is an error too: a page that there isn't, a token that is wrong.
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
  });
  context.on('weberror', error => complaints.push(String(error.error())));
  context.on('page', page => page.on('dialog', dialog => (complaints.push(`dialog: ${dialog.message()}`), dialog.dismiss())));
  return context;
}

async function step(name, action) {
  const from = Date.now();
  try {
    await action();
    console.log(`ok   ${name} (${Date.now() - from} ms)`);
  } catch (error) {
    console.log(`FAIL ${name}`);
    throw error;
  }
}

/** No serious fault for people who use a screen reader, a keyboard, or have weak eyes. */
async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { iframes: false, resultTypes: ['violations'] }));
  const serious = found.violations.filter(violation => ['serious', 'critical'].includes(violation.impact));
  const said = serious.map(v => `${v.id}: ${v.help}\n  ${v.nodes.slice(0, 3).map(node => node.html).join('\n  ')}`);
  assert.equal(serious.length, 0, `${where}\n${said.join('\n')}`);
}

/** Nothing is wider than the window. */
async function fits(page, where) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `${where} is ${over} pixels too wide`);
}

/** Has the notes' server push; resolves when it has sent it. */
function push(command) {
  return new Promise((resolve, reject) => {
    const socket = connect(join(told.notes, 'control.sock'), () => socket.write(`${command}\n`));
    socket.once('data', () => (socket.end(), resolve())).once('error', reject);
  });
}

function write(folder, name, text) {
  writeFileSync(join(folder, `.${name}.new`), text);
  renameSync(join(folder, `.${name}.new`), join(folder, name));
}

const note = number => ({ uri: `notes://${number}`, title: 'A note', text: 'Nothing new on the quay today.\n' });
const notes = (...more) => write(told.notes, 'notes.json', JSON.stringify([...Array(told.count).keys()].map(note).concat(more)));

/** Asks the API again and again until it answers as it should. */
async function until(what, ask) {
  const deadline = Date.now() + PATIENCE;
  while (!(await ask())) {
    assert.ok(Date.now() < deadline, `never: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

const owner = await visitor();
const page = await owner.newPage();
const api = async path => (await owner.request.get(origin + path)).json();
/** How many resources of the notes' server have this in their URI. */
const held = async part => (await api(`/v1/resources?server=notes&contains=${encodeURIComponent(part)}`)).resources.length;
const go = address => page.goto(origin + address);
const see = (text, within = page) => within.getByText(text).first().waitFor();
/** Set once on a page; gone when it was reloaded. */
const mark = () => page.evaluate(() => { window.unreloaded = true; });
const unreloaded = async () => assert.ok(await page.evaluate(() => window.unreloaded), 'the page was reloaded');
const listening = () => page.waitForFunction(() => document.documentElement.dataset.listening);

try {
  await step('without a session there is nothing but the way to sign in', async () => {
    await go('/servers');
    assert.match(page.url(), /\/sign-in\?to=%2Fservers$/);
    await accessible(page, 'sign in');
    await page.getByLabel('Token').fill('rdx_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await see('No scope has this token.');
    for (const path of ['/v1/status', '/v1/events', '/servers']) {
      const answer = await owner.request.get(origin + path, { maxRedirects: 0 });
      assert.ok([401, 303].includes(answer.status()), `${path}: ${answer.status()}`);
    }
  });

  await step('a link signs the owner in, once', async () => {
    await page.goto(told.link);
    await page.waitForURL(`${origin}/`);
    const [cookie] = (await owner.cookies()).filter(cookie => cookie.name.startsWith('resdex_') && cookie.name !== 'resdex_lang');
    assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict', JSON.stringify(cookie));
    assert.equal(await page.evaluate(() => document.cookie), '');
    const again = await (await visitor()).request.get(told.link);
    assert.equal(again.status(), 401);
  });

  await step('a change needs an Origin, and the right one', async () => {
    for (const headers of [{}, { origin: 'http://evil.example' }, { origin: 'null' }]) {
      for (const path of ['/servers/sync', '/v1/sync']) {
        const answer = await owner.request.post(origin + path, { headers });
        assert.equal(answer.status(), 403, `${path} ${JSON.stringify(headers)}`);
      }
    }
    const answer = await owner.request.get(`${origin}/`);
    const policy = answer.headers()['content-security-policy'];
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), policy);
    assert.ok(!policy.includes('unsafe'), policy);
  });

  await step('search answers while one types, in Chinese', async () => {
    await go('/');
    await mark();
    await page.getByLabel('Search in everything').pressSequentially('退款');
    const first = page.locator('.hit').first();
    await first.waitFor();
    await page.waitForFunction(() => document.querySelector('.hit mark')?.textContent.includes('退'));
    assert.match(decodeURIComponent(page.url()), /q=退款/);
    await unreloaded();
    await accessible(page, 'search');
    await page.getByText('Filters').click();
    await page.getByLabel('Server').selectOption('notes');
    await see('Nothing was found.');
    await page.getByLabel('Server').selectOption('handbook');
    await first.waitFor();
    await page.getByLabel('Scope').selectOption('support-bot');
    await page.waitForURL(/scope=support-bot/);
    await first.waitFor();
    await unreloaded();
  });

  await step('a hit opens its document at the passage, and back comes back', async () => {
    await go('/?q=refund+deadline');
    const link = page.locator('.hit h3 a').first();
    const title = await link.textContent();
    await link.click();
    await page.getByRole('heading', { level: 1, name: title.trim() }).waitFor();
    await page.locator('tr.marked').first().waitFor();
    assert.ok(await page.locator('tr.marked').first().isVisible());
    await accessible(page, 'document, text');
    for (const tab of ['Preview', /Chunks/, 'History']) {
      await page.locator('.tabs').getByRole('link', { name: tab }).click();
      await page.locator('.tabs [aria-current=page]').filter({ hasText: tab }).waitFor();
      await accessible(page, `document, ${tab}`);
    }
    await see('read');
    await page.goBack();
    await page.locator('.chunks pre').first().waitFor();
  });

  await step('what a bot would get has its tokens and citations', async () => {
    await go('/?q=refund');
    await page.getByRole('link', { name: 'What would a bot get?' }).click();
    await page.getByLabel('Scope').selectOption('support-bot');
    await page.getByLabel('Most tokens').fill('900');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.locator('.citations li').first().waitFor();
    const tokens = Number((await page.locator('#context .figures b').textContent()).replace(/\D/g, ''));
    assert.ok(tokens > 0 && tokens <= 900, String(tokens));
    await accessible(page, 'context');
  });

  await step('a server that is added shows its progress without reloading', async () => {
    await go('/servers');
    await mark();
    await listening();
    await accessible(page, 'servers');
    const big = join(told.files, '.big');
    mkdirSync(big);
    for (let number = 0; number < 1_500; number++) writeFileSync(join(big, `${number}.md`), `# Page ${number}\n\nPlain words of page ${number}.\n`);
    await page.evaluate(() => {
      window.bars = new Set();
      new MutationObserver(() => {
        const bar = document.querySelector('progress[data-server=big]');
        if (bar) window.bars.add(bar.value);
      }).observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true });
    });
    appendFileSync(told.config, `\n[servers.big]\nfiles = ${JSON.stringify(big)}\n`);
    const card = page.getByRole('region', { name: 'big' });
    await card.waitFor();
    await card.getByText('live', { exact: true }).waitFor();
    await card.getByText('1\u202f500').first().waitFor();
    await unreloaded();
    assert.ok((await page.evaluate(() => window.bars.size)) > 0, 'no progress was seen');
  });

  await step('a pushed change arrives on the open page without reloading', async () => {
    const { listed } = (await api('/v1/status')).servers.find(server => server.name === 'notes');
    notes({ uri: 'notes://news', title: 'News', text: '# News\n\nThe ferry sails at seven.\n' });
    await push('list_changed');
    await page.getByRole('region', { name: 'notes' }).getByText(String(listed + 1), { exact: true }).first().waitFor();
    await unreloaded();
    await until('the news are indexed', async () => (await held('notes://news')) === 1);
    await go('/resource?server=notes&uri=notes%3A%2F%2Fnews&view=text');
    await see('The ferry sails at seven.');
    await mark();
    await listening();
    notes({ uri: 'notes://news', title: 'News', text: '# News\n\nThe ferry sails at midnight.\n' });
    await push('updated notes://news');
    await see('The ferry sails at midnight.');
    await unreloaded();
    await page.locator('.tabs').getByRole('link', { name: 'History' }).click();
    await see('changed and indexed');
  });

  await step('a withheld removal is looked at and confirmed', async () => {
    write(told.notes, 'notes.json', '[]');
    await go('/servers');
    await listening();
    await push('list_changed');
    await see(/withheld removals/);
    await page.getByRole('link', { name: 'Look at them' }).click();
    await see('notes://3');
    await accessible(page, 'withheld removals');
    await page.getByRole('button', { name: 'Remove them now' }).click();
    await page.waitForURL(`${origin}/servers`);
    await page.getByText(/withheld removals/).first().waitFor({ state: 'detached' });
    await until('the notes are gone', async () => (await held('notes://')) === 0);
  });

  await step('the tree opens branch by branch, and is filtered', async () => {
    await go('/resources');
    await page.locator('details[data-branch] summary').filter({ hasText: 'handbook' }).click();
    await page.locator('.leaf').first().waitFor();
    await accessible(page, 'resources');
    await mark();
    await page.getByLabel('Filter by URI').pressSequentially('退款');
    await page.locator('td a').first().waitFor();
    await unreloaded();
    await accessible(page, 'resources, filtered');
    await go('/resources?server=big');
    const leaves = await page.locator('.leaf').count();
    await page.getByRole('link', { name: 'More' }).click();
    await page.waitForFunction(before => document.querySelectorAll('.leaf').length > before, leaves);
    await go('/resources?skipped=yes');
    await page.locator('td').filter({ hasText: 'By name only' }).first().waitFor();
  });

  await step('a template is filled in with what its server suggests, looked at, and indexed', async () => {
    await go('/templates');
    await accessible(page, 'templates');
    await page.locator('section').filter({ hasText: 'designs' }).getByRole('link', { name: '设计文档' }).click();
    await page.getByLabel('docId').focus();
    await page.locator('#list-docId option[value=checkout]').waitFor({ state: 'attached' });
    await page.getByLabel('docId').fill('权限');
    await page.getByLabel('version').focus();
    await page.locator('#list-version option[value=v1]').waitFor({ state: 'attached' });
    await page.getByLabel('version').fill('v1');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.frameLocator('iframe.preview').getByText('角色由租户管理员授予').waitFor();
    await accessible(page, 'template');
    await see('It is followed.');
    // One that the server doesn't suggest.
    write(told.notes, 'notes.json', JSON.stringify([{ uri: 'design://docs/lantern/v9', title: '', text: '# Lantern\n\nA lighthouse of paper.\n' }]));
    await go('/templates');
    await page.locator('section').filter({ hasText: 'notes' }).getByRole('link', { name: '设计文档' }).click();
    await page.getByLabel('docId').fill('lantern');
    await page.getByLabel('version').fill('v9');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByRole('button', { name: 'Index this' }).click();
    await see('It is followed.');
    await until('it is found', async () => {
      const answer = await owner.request.post(`${origin}/v1/search`, { headers: { origin }, data: { query: 'lighthouse of paper' } });
      return (await answer.json()).hits?.[0]?.uri === 'design://docs/lantern/v9';
    });
    await go('/templates');
    await page.getByRole('button', { name: 'Follow no longer design://docs/lantern/v9' }).click();
    await until('it is followed no longer', async () => (await held('lantern')) === 0);
  });

  await step('what is pinned stands in the context', async () => {
    await go('/?q=refund+deadline&server=handbook');
    await page.locator('.hit h3 a').first().click();
    await page.locator('.pin summary').click();
    await page.locator('#pin-scope').selectOption('support-bot');
    await page.getByRole('button', { name: 'Pin' }).click();
    await page.waitForURL(/\/scopes/);
    const card = page.getByRole('region', { name: 'support-bot' });
    await card.getByText('added at run time').waitFor();
    await accessible(page, 'scopes');
    await go('/context?q=parking&scope=support-bot');
    await page.locator('.citations').getByText('refunds').first().waitFor();
    await go('/scopes');
    await card.getByRole('button', { name: /Remove/ }).click();
    await card.getByText('nothing is pinned').waitFor();
    await card.getByRole('button', { name: 'New token' }).click();
    await page.locator('#token').waitFor();
    assert.match(await page.locator('#token').textContent(), /^rdx_/);
    await see('token_sha256');
    await accessible(page, 'a new token');
  });

  await step('the trace tells who asked what, and leads to the document', async () => {
    await go('/trace');
    await see('退款');
    await accessible(page, 'trace');
    await page.getByLabel('Scope').selectOption('support-bot');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.locator('tbody td .badge').filter({ hasText: 'support-bot' }).first().waitFor();
    await page.locator('tbody td a').first().click();
    await page.locator('.tabs').waitFor();
  });

  await step('the overview draws its figures', async () => {
    await go('/overview');
    // A level line has no height, so it doesn't count as visible.
    await page.locator('.chart path').first().waitFor({ state: 'attached' });
    await accessible(page, 'overview');
  });

  await step('a hostile document harms nothing', async () => {
    for (const address of [
      '/?q=quicksand+mayhem', '/context?q=quicksand+mayhem', '/resources?server=files',
      '/resource?server=files&uri=files%3A%2F%2F%2Fhostile.md', '/resource?server=files&uri=files%3A%2F%2F%2Fhostile.html',
      '/resource?server=files&uri=files%3A%2F%2F%2Fhostile.md&view=text', '/resource?server=files&uri=files%3A%2F%2F%2Fhostile.md&view=chunks',
      '/resource?server=files&uri=files%3A%2F%2F%2Flogo.svg', '/resource?server=files&uri=files%3A%2F%2F%2Fdata.json',
      '/?q=%22%3E%3Cscript%3Edocument.title%3D%27owned%27%3C%2Fscript%3E', '/sign-in?to=javascript:alert(1)',
      '/resource?server=files&uri=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E',
    ]) {
      await go(address);
      await page.waitForLoadState('load');
      assert.ok(!(await page.title()).startsWith('owned'), address);
      const text = await page.locator('main').innerText();
      assert.ok(!/[\u0000-\u0008\u000b-\u001f\u202a-\u202e\u200b]/.test(text), `${address} shows a control character`);
    }
    await go('/resource?server=files&uri=files%3A%2F%2F%2Fhostile.md');
    const frame = page.frameLocator('iframe.preview');
    await frame.getByText('Quicksand mayhem').waitFor();
    assert.equal(await frame.locator('script, img, svg, iframe, form, a[href], link, base, body style').count(), 0);
    assert.ok((await frame.locator('body').boundingBox()).width < 800, 'the preview has its style');
    const sandboxed = await page.locator('iframe.preview').getAttribute('sandbox');
    assert.equal(sandboxed, '');
    const away = await page.evaluate(() => fetch('http://probe.example/').then(() => 'gone', () => 'kept'));
    assert.equal(away, 'kept', 'the policy lets nothing out');
    complaints.splice(0, complaints.length, ...complaints.filter(text => !text.includes('probe.example')));
  });

  await step('the language follows the browser, and is switched', async () => {
    const chinese = await visitor({ locale: 'zh-CN', storageState: await owner.storageState() });
    const other = await chinese.newPage();
    await other.goto(`${origin}/servers`);
    await other.getByRole('heading', { level: 1, name: '服务器' }).waitFor();
    assert.equal(await other.locator('html').getAttribute('lang'), 'zh-Hans');
    await accessible(other, '服务器');
    await other.getByRole('link', { name: 'English' }).click();
    await other.getByRole('heading', { level: 1, name: 'Servers' }).waitFor();
    await other.getByRole('link', { name: '中文' }).click();
    await other.getByRole('heading', { level: 1, name: '服务器' }).waitFor();
    await chinese.close();
  });

  await step('it works on a phone, in the dark, and by keyboard', async () => {
    const phone = await visitor({ viewport: { width: 375, height: 740 }, colorScheme: 'dark', hasTouch: true, storageState: await owner.storageState() });
    const small = await phone.newPage();
    for (const address of [
      '/', '/?q=退款', '/context?q=refund', '/servers', '/resources', '/resources?contains=a', '/templates', '/scopes', '/trace', '/overview',
      '/resource?server=handbook&uri=handbook%3A%2F%2F%2Frefunds.md', '/resource?server=handbook&uri=handbook%3A%2F%2F%2Frefunds.md&view=text',
    ]) {
      await small.goto(origin + address);
      await fits(small, address);
      await accessible(small, `${address}, small and dark`);
    }
    await small.goto(`${origin}/servers`);
    await small.keyboard.press('Tab');
    assert.equal(await small.evaluate(() => document.activeElement.className), 'skip');
    await small.keyboard.press('Enter');
    assert.equal(await small.evaluate(() => document.activeElement.id), 'content');
    await small.goto(`${origin}/?q=x`);
    await small.locator('h1').click();
    await small.keyboard.press('/');
    assert.equal(await small.evaluate(() => document.activeElement.id), 'q');
    await phone.close();
  });

  await step('without scripts every view still works', async () => {
    const plain = await visitor({ javaScriptEnabled: false, storageState: await owner.storageState() });
    const bare = await plain.newPage();
    await bare.goto(`${origin}/?q=refund`);
    await bare.locator('.hit h3 a').first().click();
    await bare.locator('tr.marked').first().waitFor();
    await bare.goto(`${origin}/resources`);
    await bare.locator('details[data-branch] summary').filter({ hasText: 'handbook' }).click();
    await bare.locator('details[open]').getByRole('link', { name: 'Open' }).click();
    await bare.locator('.leaf').first().waitFor();
    await bare.goto(`${origin}/servers`);
    await bare.getByRole('button', { name: 'Sync all now' }).click();
    await bare.waitForURL(`${origin}/servers`);
    await plain.close();
  });

  await step("a scope's token signs in to that scope's view only", async () => {
    const bot = await visitor();
    const seen = await bot.newPage();
    await seen.goto(`${origin}/resources`);
    await seen.getByLabel('Token').fill(told.token);
    await seen.getByRole('button', { name: 'Sign in' }).click();
    await seen.waitForURL(`${origin}/resources`);
    await seen.getByText('support-bot').first().waitFor();
    const text = await seen.locator('main').innerText();
    assert.ok(text.includes('handbook') && !text.includes('designs'), text);
    for (const address of ['/servers', '/overview', '/scopes', '/trace', '/templates', '/?q=quicksand+mayhem']) {
      await seen.goto(origin + address);
      const shown = await seen.locator('main').innerText();
      assert.ok(!/designs|notes:|hostile\.md|everything/.test(shown.replace('Search in everything', '')), `${address}: ${shown}`);
    }
    for (const [address, status] of [
      ['/resource?server=files&uri=files%3A%2F%2F%2Fhostile.md', 400], ['/servers/withheld?server=handbook', 403], ['/v1/series', 403],
    ]) {
      assert.equal((await bot.request.get(origin + address)).status(), status, address);
    }
    await seen.getByRole('button', { name: 'Sign out' }).click();
    await seen.waitForURL(/\/sign-in/);
    await bot.close();
  });

  if (told.screenshots) {
    await step('pictures are taken', async () => {
      mkdirSync(told.screenshots, { recursive: true });
      const shots = [
        ['search', '/?q=退款', 'en-GB', 'light', 1100, 760], ['servers', '/servers', 'en-GB', 'dark', 1100, 760],
        ['document', '/resource?server=handbook&uri=handbook%3A%2F%2F%2Frefunds.md', 'en-GB', 'light', 1100, 760],
        ['phone', '/?q=refund', 'zh-CN', 'light', 375, 760],
      ];
      for (const [name, address, locale, colorScheme, width, height] of shots) {
        const context = await visitor({ locale, colorScheme, viewport: { width, height }, storageState: await owner.storageState() });
        const shown = await context.newPage();
        await shown.goto(origin + address);
        await shown.waitForLoadState('load');
        await shown.screenshot({ path: join(told.screenshots, `${name}.png`) });
        await context.close();
      }
    });
  }

  await step('no request has left, and the browser has nothing to complain about', async () => {
    assert.deepEqual(left.filter(url => url !== 'http://probe.example/'), []);
    assert.deepEqual(complaints, []);
  });
} catch (error) {
  console.error(error);
  console.error('at', page.url());
  console.error((await page.locator('main').innerText().catch(() => '')).slice(0, 3_000));
  process.exitCode = 1;
} finally {
  await browser.close();
}
