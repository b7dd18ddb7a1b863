// SPDX-License-Identifier: Apache-2.0
// The plain page at `/`: one event's occupancy, live.
//
// Seats are kept as one array of states in layout order. It is filled from
// /availability and kept true by the stream's frames; block and event counts
// are sums over it, changed seat by seat. A frame that is not newer than the
// availability answer is skipped, so nothing is counted twice.
'use strict';

const STATES = ['available', 'held', 'sold', 'blocked'];
const BAR_ORDER = ['sold', 'held', 'blocked', 'available'];
const NEWS_COUNT_MAX = 6;
const RETRY_MS = [500, 1000, 2000, 5000];
const element = (id) => document.getElementById(id);

let token = null;
let current = null; // the event being watched

// ---- Small things ----

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function say(message) {
  element('trouble').textContent = message || '';
  element('trouble').hidden = !message;
}

function setConnection(state, text) {
  element('connection').dataset.state = state;
  element('connection').textContent = text;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const error = new Error(body?.error?.message || `The server answered ${response.status}.`);
  error.status = response.status;
  throw error;
}

const data = async (path, options) => (await (await call(path, options)).json()).data;

// ---- Bars and numbers ----

function makeBar(node) {
  node.replaceChildren(...BAR_ORDER.map((name) => make('span', name)));
  return node;
}

function drawBar(bar, counts, total) {
  for (const part of bar.children) {
    const count = counts[STATES.indexOf(part.className)];
    part.style.width = total ? `${(100 * count) / total}%` : '0';
  }
}

function makeCounts() {
  element('counts').replaceChildren(...STATES.map((name) => {
    const box = make('div', name);
    const number = make('dd');
    number.append(make('span'), make('small'));
    box.append(make('dt', '', name), number);
    return box;
  }));
}

function drawCounts(counts, total) {
  [...element('counts').children].forEach((box, state) => {
    const [number, percent] = box.lastChild.children;
    number.textContent = counts[state].toLocaleString();
    percent.textContent = total ? `${((100 * counts[state]) / total).toFixed(1)} %` : '';
  });
  element('bar').setAttribute('aria-label',
    STATES.map((name, state) => `${counts[state]} ${name}`).join(', '));
}

function makeBlocks(event) {
  let first = 0;
  event.rows = event.blocks.map((block) => {
    const row = { block, first, end: first + block.seat_count, counts: [0, 0, 0, 0], dirty: true };
    first = row.end;
    row.bar = makeBar(make('div', 'bar'));
    row.free = make('span', 'free');
    const item = make('li');
    const name = make('b', '', block.block);
    name.title = block.name;
    item.append(name, row.bar, row.free);
    row.item = item;
    return row;
  });
  element('blocks').replaceChildren(...event.rows.map((row) => row.item));
}

function findRow(event, index) {
  let low = 0, high = event.rows.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (index < event.rows[middle].end) high = middle;
    else low = middle + 1;
  }
  return event.rows[low];
}

// Many frames, one drawing per turn of the screen.
function drawSoon(event) {
  if (event.drawing) return;
  event.drawing = true;
  requestAnimationFrame(() => {
    event.drawing = false;
    if (event !== current) return;
    drawBar(element('bar'), event.counts, event.states.length);
    drawCounts(event.counts, event.states.length);
    for (const row of event.rows.filter((one) => one.dirty)) {
      row.dirty = false;
      drawBar(row.bar, row.counts, row.end - row.first);
      row.free.textContent = `${row.counts[0]} free`;
    }
  });
}

// ---- The event's seats ----

const frameNumber = (id) => Number(String(id).split('-').pop());

async function loadStates(event) {
  const answer = await data(`/api/events/${event.event_id}/availability`);
  const bytes = Uint8Array.from(atob(answer.states), (c) => c.charCodeAt(0));
  event.states = new Uint8Array(answer.count);
  event.counts = [0, 0, 0, 0];
  event.loadedNumber = frameNumber(answer.stream_id);
  for (const row of event.rows) { row.counts = [0, 0, 0, 0]; row.dirty = true; }
  for (let i = 0; i < answer.count; i++) {
    const state = (bytes[i >> 2] >> (2 * (i & 3))) & 3;
    event.states[i] = state;
    event.counts[state]++;
    findRow(event, i).counts[state]++;
  }
  drawSoon(event);
}

function tell(event, frame) {
  const kinds = new Map();
  for (const [, status, reason] of frame.seats) {
    const words = reason ? `${status} again (${reason.replaceAll('_', ' ')})` : status;
    kinds.set(words, (kinds.get(words) || 0) + 1);
  }
  const text = [...kinds].map(([words, count]) => `${count} ${words}`).join(', ');
  const time = new Date().toLocaleTimeString();
  element('news').prepend(make('li', '', `${time}  ${text}`));
  while (element('news').children.length > NEWS_COUNT_MAX) element('news').lastChild.remove();
}

function applyFrame(event, frame) {
  if (frameNumber(frame.id) <= event.loadedNumber) return;
  for (const [index, status] of frame.seats) {
    const before = event.states[index], after = STATES.indexOf(status);
    if (before === undefined || after < 0 || before === after) continue;
    const row = findRow(event, index);
    event.states[index] = after;
    event.counts[before]--; event.counts[after]++;
    row.counts[before]--; row.counts[after]++;
    row.dirty = true;
  }
  tell(event, frame);
  drawSoon(event);
}

// ---- The stream ----

async function* readFrames(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split('\n\n');
    text = parts.pop();
    for (const part of parts) {
      const frame = { name: 'message', id: null, text: '' };
      for (const line of part.split('\n')) {
        if (line.startsWith('event: ')) frame.name = line.slice(7);
        if (line.startsWith('id: ')) frame.id = line.slice(4);
        if (line.startsWith('data: ')) frame.text += line.slice(6);
      }
      if (frame.text) yield frame;
    }
  }
}

async function readStream(event, stop) {
  const headers = event.lastId ? { 'Last-Event-ID': event.lastId } : {};
  const response = await call(`/api/events/${event.event_id}/stream`, { headers, signal: stop.signal });
  setConnection('live', 'live');
  event.tries = 0;
  for await (const frame of readFrames(response)) {
    if (frame.name === 'snapshot') await loadStates(event);
    if (frame.name === 'seats') applyFrame(event, JSON.parse(frame.text));
    if (frame.id) event.lastId = frame.id;
  }
}

async function watch(event) {
  const stop = new AbortController();
  current?.stop?.abort();
  Object.assign(event, { stop, tries: 0, lastId: null, states: new Uint8Array(0), counts: [0, 0, 0, 0] });
  current = event;
  element('event').hidden = false;
  element('event-name').textContent = event.name;
  element('event-state').textContent = `${event.status} · ${event.seat_count.toLocaleString()} seats`;
  element('news').replaceChildren();
  makeBar(element('bar'));
  makeCounts();
  makeBlocks(event);
  for (const button of element('events').children)
    button.setAttribute('aria-current', String(button.dataset.id === event.event_id));
  while (!stop.signal.aborted) {
    try {
      await readStream(event, stop);
    } catch (error) {
      if (stop.signal.aborted) return;
      if (error.status === 401 || error.status === 404) { signInAgain(error.message); return; }
    }
    setConnection('away', 'reconnecting');
    await pause(RETRY_MS[Math.min(event.tries++, RETRY_MS.length - 1)]);
  }
}

// ---- Beginning ----

function signInAgain(message) {
  token = null;
  element('main').hidden = true;
  element('sign-in').hidden = false;
  setConnection('waiting', 'not signed in');
  say(message);
}

async function findToken() {
  const fragment = new URLSearchParams(location.hash.slice(1)).get('token');
  if (fragment) return fragment;
  const response = await fetch('/api/demo/token', { method: 'POST' });
  return response.ok ? (await response.json()).data.buyer.token : null;
}

async function start() {
  say('');
  const events = await data('/api/events');
  element('sign-in').hidden = true;
  element('main').hidden = false;
  element('empty').hidden = events.length > 0;
  element('events').replaceChildren(...events.map((event) => {
    const button = make('button', '', event.name);
    button.type = 'button';
    button.dataset.id = event.event_id;
    button.addEventListener('click', () => watch(event));
    return button;
  }));
  if (events.length > 0) watch(events[0]);
  else setConnection('waiting', 'nothing to watch');
}

async function begin() {
  element('sign-in').addEventListener('submit', (submit) => {
    submit.preventDefault();
    token = element('token').value.trim();
    start().catch((error) => signInAgain(error.message));
  });
  addEventListener('hashchange', () => location.reload());
  try {
    token = await findToken();
    if (token) await start();
    else signInAgain('');
  } catch (error) {
    if (error.status === 401) signInAgain(error.message);
    else { setConnection('away', 'unreachable'); say(error.message); }
  }
}

begin();
