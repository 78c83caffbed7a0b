// Keeps a page live, signs forms, and adds keys. Without it every page and form works too.
'use strict';
const data = document.documentElement.dataset, $ = (id) => document.getElementById(id);
const listen = addEventListener.bind(document);
const policy = window.trustedTypes?.createPolicy('midwatch', { createHTML: (html) => html });
const fragment = (html) => {
  const template = document.createElement('template');
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
};
const setCookie = (name, value) => { document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=31536000; samesite=strict`; };

// --- the key of this browser, which signs what its person decides; it cannot be exported
const store = (mode, work) => new Promise((resolve, reject) => {
  const open = indexedDB.open('midwatch', 1);
  open.onupgradeneeded = () => open.result.createObjectStore('keys');
  open.onerror = () => reject(open.error);
  open.onsuccess = () => {
    const request = work(open.result.transaction('keys', mode).objectStore('keys'));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  };
});
const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/[+/=]/g, (c) => ({ '+': '-', '/': '_' })[c] || '');
const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const EC = { name: 'ECDSA', namedCurve: 'P-256' };
async function newKey() {
  const pair = await crypto.subtle.generateKey(EC, false, ['sign']);
  await store('readwrite', (keys) => keys.put(pair, 'page'));
  return base64(await crypto.subtle.exportKey('raw', pair.publicKey));
}
async function proof(path, body) {
  const pair = await store('readonly', (keys) => keys.get('page'));
  if (!pair) throw new Error('this browser has lost its key; sign in again with `midwatch open`');
  const time = String(Math.round(Date.now() + skew)), nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  const digest = hex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)));
  const text = ['midwatch-proof-v1', location.origin, 'POST', path, digest, time, nonce].join('\n');
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, pair.privateKey, new TextEncoder().encode(text));
  return { 'midwatch-proof': base64(signature), 'midwatch-time': time, 'midwatch-nonce': nonce };
}

// --- sign in: the code stands after `#`, so that it is in no log
const enter = $('enter');
if (enter) {
  const send = async () => {
    try { enter.elements.key.value = await newKey(); } catch { /* then this browser only looks */ }
    HTMLFormElement.prototype.submit.call(enter);
  };
  const code = location.hash.slice(1);
  if (code) {
    history.replaceState(null, '', location.pathname + location.search);
    enter.elements.code.value = code;
    $('entering').hidden = false;
    send();
  }
  enter.addEventListener('submit', (event) => { event.preventDefault(); send(); });
}

// --- alerts
function say(text, done) {
  const alert = $('alert');
  if (!alert) return;
  alert.textContent = text;
  alert.classList.toggle('done', !!done);
  alert.hidden = !text;
  if (text) alert.scrollIntoView({ block: 'nearest' });
}
if (sessionStorage.said) { say(sessionStorage.said, true); delete sessionStorage.said; }

// --- forms: signed, sent, and the answer shown
listen('submit', async (event) => {
  const form = event.target, button = event.submitter;
  if (!form.matches('form[data-sign]') || button?.formMethod === 'get') return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, button));
  fields.delete('token');
  const path = new URL(form.action).pathname, body = fields.toString();
  if (button) button.disabled = true;
  try {
    const headers = { ...(await proof(path, body)), accept: 'application/json' };
    const response = await fetch(path, { method: 'POST', body: fields, headers });
    const answer = await response.json();
    if (!response.ok) throw new Error([answer.error?.message, answer.error?.hint].filter(Boolean).join(': '));
    sessionStorage.said = answer.message;
    location.assign(answer.location);
  } catch (error) {
    say(error.message || 'the daemon did not answer');
    if (button) button.disabled = false;
  }
});

// --- time: the zone of this browser, and distances by the clock of the server
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (data.tz && zone && zone !== data.tz && sessionStorage.tz !== zone) {
  sessionStorage.tz = zone;
  setCookie('tz', zone);
  location.reload();
}
let skew = data.now ? data.now - Date.now() : 0;
const units = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];
function distance(seconds) {
  const first = units.findIndex(([, unit]) => unit <= seconds);
  if (first < 0) return '';
  const [name, unit] = units[first], next = units[first + 1];
  const rest = next ? Math.floor((seconds % unit) / next[1]) : 0;
  return Math.floor(seconds / unit) + name + (rest ? rest + next[0] : '');
}
setInterval(() => {
  if (document.hidden) return;
  for (const span of document.querySelectorAll('.rel[data-at]')) {
    const away = Math.trunc((span.dataset.at - Date.now() - skew) / 1000), text = distance(Math.abs(away));
    span.textContent = !text ? 'now' : away < 0 ? text + ' ago' : 'in ' + text;
  }
}, 1000);

// --- live: each region that changed comes whole, so an interruption costs nothing
let stream, seq = data.seq, beat = 0, delay = 1000, lostAt = 0;
const waiting = new Map();
function state(name, text) {
  const line = $('live');
  if (line && line.dataset.state !== name) { line.dataset.state = name; line.textContent = text; }
}
const isBusy = (region) => {
  const focus = document.activeElement;
  return (focus?.matches('input, textarea, select') && region.contains(focus)) || [...region.querySelectorAll('textarea, input:not([type=hidden])')].some((field) => field.value !== field.defaultValue);
};
function swap(html) {
  const fresh = fragment(html).firstElementChild, old = fresh && $(fresh.id);
  if (!old || old.dataset.hash === fresh.dataset.hash) return;
  if (isBusy(old)) { waiting.set(fresh.id, html); return; }
  waiting.delete(fresh.id);
  const open = [...old.querySelectorAll('details[open][id]')].map((it) => it.id);
  const focused = old.contains(document.activeElement) && (document.activeElement.id || document.activeElement.getAttribute('href'));
  const follow = old.querySelector('[data-follow]'), atEnd = follow && follow.scrollHeight - follow.scrollTop - follow.clientHeight < 40;
  old.replaceWith(fresh);
  for (const id of open) $(id)?.setAttribute('open', '');
  if (focused) ($(focused) || [...fresh.querySelectorAll('a[href]')].find((it) => it.getAttribute('href') === focused))?.focus({ preventScroll: true });
  const end = fresh.querySelector('[data-follow]');
  if (end && atEnd) end.scrollTop = end.scrollHeight;
  fresh.classList.add('fresh');
}
listen('focusout', () => setTimeout(() => waiting.forEach(swap), 0));
function connect() {
  if (!data.view || document.hidden || stream) return;
  stream = new EventSource(`/live?view=${encodeURIComponent(data.view)}&after=${seq}`);
  const on = stream.addEventListener.bind(stream);
  const alive = () => { beat = Date.now(); delay = 1000; lostAt = 0; if (say.lost) say(say.lost = ''); state('live', 'live'); };
  on('region', (event) => { alive(); if (event.lastEventId) seq = event.lastEventId; swap(event.data); });
  on('beat', (event) => {
    alive();
    const now = JSON.parse(event.data);
    skew = now.now_us / 1000 - Date.now();
    seq = now.seq ?? seq;
    if (now.version !== data.version) say('Midwatch has a new version: reload');
  });
  on('gone', (event) => { stop(); state('stale', 'signed out'); say(event.data || 'this browser is signed out'); data.view = ''; });
  stream.onerror = () => { stop(); lost(); delay = Math.min(delay * 2, 30000); setTimeout(connect, delay * (0.8 + Math.random() * 0.4)); };
}
function stop() { stream?.close(); stream = undefined; }
function lost() {
  lostAt ||= Date.now();
  const seconds = (Date.now() - lostAt) / 1000;
  if (3 < seconds) state('stale', seconds < 15 ? 'reconnecting' : 'stale: no connection');
  if (10 < seconds && !say.lost) { say.lost = true; say('No connection to Midwatch. What you see may be out of date.'); }
}
setInterval(() => {
  if (lostAt) lost();
  if (stream && 40000 < Date.now() - beat && beat) { stop(); connect(); }
}, 1000);
let hiding;
listen('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(stop, 10000); else connect();
});
for (const name of ['online', 'pageshow']) addEventListener(name, () => { delay = 1000; connect(); });
addEventListener('pagehide', stop);
connect();

// --- find, keys, preview, copy, colours
const find = $('find'), results = $('find-results');
let asked;
async function show(address, into, id) {
  const mine = asked = {};
  const html = await (await fetch(address)).text();
  if (mine === asked) into.replaceChildren(...[fragment(html).querySelector(id)].filter(Boolean));
}
$('find-open')?.addEventListener('click', (event) => { event.preventDefault(); find.showModal(); });
find?.addEventListener('input', () => show('/find?q=' + encodeURIComponent($('find-q').value), results, '.found'));
let preview;
const previewed = document.querySelector('[data-preview]');
const refresh = () => {
  clearTimeout(preview);
  preview = setTimeout(() => show(previewed.dataset.preview + '?' + new URLSearchParams(new FormData(previewed.closest('form'))), $('preview'), '#preview-result'), 300);
};
previewed?.addEventListener('input', refresh);
if (previewed?.querySelector('[name=when]').value) refresh();
listen('click', (event) => {
  if (event.target.matches('code.copy')) navigator.clipboard?.writeText(event.target.textContent);
});
$('theme-form')?.addEventListener('change', (event) => {
  setCookie('theme', event.target.value);
  location.reload();
});
const off = $('keys-off');
if (off) { off.checked = localStorage.keysOff; off.onchange = () => { localStorage.keysOff = off.checked || ''; }; }
let went = 0;
const places = { w: '/', a: '/approvals', s: '/schedules', r: '/runs', t: '/timeline' };
addEventListener('keydown', (event) => {
  if (!find || event.target.matches('input, textarea, select') || event.altKey || localStorage.keysOff) return;
  const ctrl = event.ctrlKey || event.metaKey;
  if (event.key === '/' || (ctrl && event.key === 'k')) { event.preventDefault(); find.showModal(); return; }
  if (ctrl) return;
  if (event.key === '?') $('keys').showModal();
  else if (Date.now() - went < 1500 && places[event.key]) location.assign(places[event.key]);
  else if (event.key === 'j' || event.key === 'k') {
    const links = [...document.querySelectorAll('main .row-link, main .row .what > a')], at = links.indexOf(document.activeElement);
    (links[at + (event.key === 'j' ? 1 : -1)] || links[0])?.focus();
  }
  went = event.key === 'g' ? Date.now() : 0;
});
