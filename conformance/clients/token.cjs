// The suite knows no tokens: every request of this process shows the one in the environment.
const ask = globalThis.fetch;
globalThis.fetch = (target, options = {}) => {
  const headers = new Headers(options.headers ?? (target instanceof Request ? target.headers : undefined));
  if (!headers.has('authorization')) headers.set('authorization', `Bearer ${process.env.MIDWATCH_TOKEN}`);
  return ask(target, { ...options, headers });
};
// What does not go through fetch goes through here.
const http = require('node:http');
const request = http.request;
http.request = (...asked) => {
  const made = request(...asked);
  if (!made.hasHeader('authorization')) made.setHeader('authorization', `Bearer ${process.env.MIDWATCH_TOKEN}`);
  return made;
};
// The suite bundles a fetch of its own.
const diagnostics = require('node:diagnostics_channel');
diagnostics.subscribe('undici:request:create', ({ request }) => {
  const shown = request.headers;
  const has = Array.isArray(shown) ? shown.some((it) => String(it).toLowerCase() === 'authorization') : /^authorization:/im.test(shown);
  if (!has) request.addHeader('authorization', `Bearer ${process.env.MIDWATCH_TOKEN}`);
});
