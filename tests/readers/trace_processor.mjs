// node trace_processor.mjs FOLDER TRACE SQL... → one line of JSON a query: its rows as objects, 64-bit numbers as strings.
// FOLDER holds Perfetto's trace_processor for browsers (tests/readers/README.md): here its worker runs in node.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const [folder, trace, ...queries] = process.argv.slice(2);
const PIECE = 32 << 20;

// What a worker of a browser has.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location = { href: pathToFileURL(join(folder, 'engine_bundle.js')).href };
const wasm = readFileSync(join(folder, 'trace_processor.wasm'));
globalThis.fetch = async () => new Response(wasm, { headers: { 'Content-Type': 'application/wasm' } });
globalThis.XMLHttpRequest = class {
  open() {}
  send() { this.status = 200; this.response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length); }
};
const Module = WebAssembly.Module;  // the 64-bit module is not there: its probe must fail
WebAssembly.Module = function (bytes) {
  if (bytes.length < 64) throw new Error('no memory64');
  return new Module(bytes);
};
const warn = console.warn, log = console.log;
console.warn = () => {};
console.log = () => {};
new Function(readFileSync(join(folder, 'engine_bundle.node.js'), 'utf8'))();
WebAssembly.Module = Module;

const { EngineBase } = await import(pathToFileURL(join(folder, 'engine.mjs')).href);
class Engine extends EngineBase {
  id = 'node';
  mode = 'WASM';
  port = { postMessage: (data) => setImmediate(() => this.onRpcResponseBytes(data)) };
  connect() { globalThis.self.onmessage({ data: this.port }); }
  rpcSendRequestBytes(data) { this.port.onmessage({ data: new Uint8Array(data) }); }
  [Symbol.dispose]() {}
}
const engine = new Engine();
engine.connect();
await new Promise((resolve) => setTimeout(resolve, 1000));

const bytes = readFileSync(trace);
for (let at = 0; at < bytes.length; at += PIECE) await engine.parse(bytes.subarray(at, at + PIECE));
await engine.notifyEof();
for (const sql of queries) {
  const result = await engine.query(sql);
  const columns = result.columns(), rows = [];
  for (const it = result.iter({}); it.valid(); it.next()) rows.push(Object.fromEntries(columns.map((name) => [name, it.get(name)])));
  process.stdout.write(JSON.stringify(rows, (key, value) => (typeof value === 'bigint' ? value.toString() : value)) + '\n');
}
process.exit(0);
