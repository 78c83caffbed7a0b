// The suite does not support tokens: adds the one from the environment to every request of this process.
const originalFetch = globalThis.fetch;
globalThis.fetch = (target, options = {}) => {
  const headers = new Headers(options.headers ?? (target instanceof Request ? target.headers : undefined));
  if (!headers.has('authorization')) headers.set('authorization', `Bearer ${process.env.MIDWATCH_TOKEN}`);
  return originalFetch(target, { ...options, headers });
};
// Requests that do not use fetch.
const http = require('node:http');
const originalRequest = http.request;
http.request = (...args) => {
  const request = originalRequest(...args);
  if (!request.hasHeader('authorization')) request.setHeader('authorization', `Bearer ${process.env.MIDWATCH_TOKEN}`);
  return request;
};
// Requests of the fetch that the suite bundles.
const diagnostics = require('node:diagnostics_channel');
diagnostics.subscribe('undici:request:create', ({ request }) => {
  const headers = request.headers;
  const has = Array.isArray(headers) ? headers.some((it) => String(it).toLowerCase() === 'authorization') : /^authorization:/im.test(headers);
  if (!has) request.addHeader('authorization', `Bearer ${process.env.MIDWATCH_TOKEN}`);
});
