// Runs SQL on a trace with Perfetto's trace_processor, as its user interface does: `node trace_processor.js UI TRACE SQL...`
//
// UI is the folder of a release of the user interface (`v52.0-…`), with engine_bundle.js and trace_processor.wasm. The engine speaks
// TraceProcessorRpcStream (protos/perfetto/trace_processor/trace_processor.proto), which is encoded here by hand.
// Prints one line of JSON: {"error": "…"} if the trace is refused, {"aborted": "…"} if the engine died, else {"results": [[{column: value}]]}.
'use strict';
const fs = require('fs');
const path = require('path');
const v8 = require('v8');
const vm = require('vm');

// Optimising the engine takes five times as long as all that it is asked. An engine of JavaScript that does not know the flag does without.
v8.setFlagsFromString('--liftoff-only');

const [ui, trace, ...queries] = process.argv.slice(2);
const log = [];
const note = (...words) => log.push(words.join(' '));

function finish(answer) {
  fs.writeSync(1, JSON.stringify(answer) + '\n');
  process.exit(0);
}

// An abort of the engine is an exception here.
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, error => finish({aborted: log.concat(String(error)).join('\n')}));
}

// The worker runs in a context with WebAssembly of its own: functions of another one cannot be added to its table.
function startEngine(answered) {
  const file = url => path.join(ui, path.basename(String(url)));
  const self = {location: {href: 'file://' + file('engine_bundle.js')}, addEventListener() {}, postMessage() {}};
  const context = {
    self, location: self.location, importScripts() {}, WorkerGlobalScope: function() {},
    console: {log: note, warn: note, error: note, debug: note, info: note},
    TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout, queueMicrotask, crypto: globalThis.crypto,
    fetch: async url => new Response(fs.readFileSync(file(url)), {headers: {'content-type': 'application/wasm'}}),
    XMLHttpRequest: function() {
      this.open = (_, url) => { this.url = url; };
      this.send = () => {
        const bytes = fs.readFileSync(file(this.url));
        this.status = 200;
        this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      };
    },
  };
  context.globalThis = context;
  vm.createContext(context);
  vm.runInContext(fs.readFileSync(file('engine_bundle.js'), 'utf8'), context);
  const port = {postMessage: answered};
  self.onmessage({data: port});
  const Bytes = vm.runInContext('Uint8Array', context);
  return bytes => {
    const copy = new Bytes(bytes.length);
    copy.set(bytes);
    port.onmessage({data: copy});
  };
}

function varint(number) {
  const bytes = [];
  let rest = BigInt(number);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}
const numberField = (field, number) => Buffer.concat([varint(field << 3), varint(number)]);
const bytesField = (field, bytes) => Buffer.concat([varint(field << 3 | 2), varint(bytes.length), bytes]);

// The fields of a message: {number: [values]}, integers as BigInt.
function fields(bytes) {
  const found = {};
  let at = 0;
  const number = () => {
    let value = 0n, shift = 0n, byte;
    do { byte = bytes[at++]; value |= BigInt(byte & 127) << shift; shift += 7n; } while (byte & 128);
    return value;
  };
  while (at < bytes.length) {
    const tag = Number(number());
    let value;
    switch (tag & 7) {
      case 0: value = number(); break;
      case 1: value = bytes.subarray(at, at += 8); break;
      case 2: { const size = Number(number()); value = bytes.subarray(at, at += size); break; }
      case 5: value = bytes.subarray(at, at += 4); break;
      default: throw new Error('wire type ' + (tag & 7));
    }
    (found[tag >> 3] ||= []).push(value);
  }
  return found;
}

// The integers of a packed field.
function integers(chunks) {
  const found = [];
  for (const chunk of chunks || []) {
    for (let at = 0; at < chunk.length;) {
      let value = 0n, shift = 0n, byte;
      do { byte = chunk[at++]; value |= BigInt(byte & 127) << shift; shift += 7n; } while (byte & 128);
      found.push(BigInt.asIntN(64, value));
    }
  }
  return found;
}

// The rows of a batch of cells. Integers that a double cannot hold are texts.
function* rows(batch, columns) {
  const varints = integers(batch[2]).values();
  const doubles = (batch[3] || []).flatMap(chunk => Array.from({length: chunk.length / 8}, (_, at) => chunk.readDoubleLE(8 * at))).values();
  const texts = (batch[5] || []).flatMap(joined => joined.toString().split('\0').slice(0, -1)).values();
  const exact = value => Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  const cell = kind => {
    switch (Number(kind)) {
      case 1: return null;
      case 2: return exact(varints.next().value);
      case 3: return doubles.next().value;
      case 4: return texts.next().value;
      default: throw new Error('a cell of kind ' + kind);
    }
  };
  const cells = integers(batch[1]);
  for (let at = 0; at < cells.length; at += columns.length) {
    yield Object.fromEntries(columns.map((column, number) => [column, cell(cells[at + number])]));
  }
}

const [APPEND, FINALIZE, QUERY] = [1, 2, 3];
const PIECE = 16 << 20;
let sent = 0;
let answers = [];
const send = startEngine(bytes => {
  for (const message of fields(Buffer.from(bytes))[1] || []) answers.push(fields(message));
});

// Sends a request, and returns the answers. The engine answers before it returns.
function ask(request, ...rest) {
  answers = [];
  const message = Buffer.concat([numberField(1, sent), numberField(2, request), ...rest]);
  send(bytesField(1, message));
  sent += 1;
  for (const answer of answers) {
    if (answer[5]) throw new Error(answer[5][0].toString());
  }
  return answers;
}

function run() {
  const refuse = status => { if (status && status[0].length) finish({error: status[0].toString()}); };
  const bytes = fs.readFileSync(trace);
  for (let at = 0; at < bytes.length; at += PIECE) {
    const [answer] = ask(APPEND, bytesField(101, bytes.subarray(at, at + PIECE)));
    refuse(fields(answer[201][0])[2]);
  }
  const [finalized] = ask(FINALIZE);
  if (finalized[211]) refuse(fields(finalized[211][0])[1]);
  const results = queries.map(query => {
    const found = [];
    let columns = [];
    for (const answer of ask(QUERY, bytesField(103, bytesField(1, Buffer.from(query))))) {
      const result = fields(answer[203][0]);
      if (result[2] && result[2][0].length) throw new Error(result[2][0].toString());
      if (result[1]) columns = result[1].map(String);
      for (const batch of result[3] || []) found.push(...rows(fields(batch), columns));
    }
    return found;
  });
  finish({results});
}

// Until the engine is compiled, it throws at a message.
const started = Date.now();
function begin() {
  try {
    ask(QUERY, bytesField(103, bytesField(1, Buffer.from('select 1'))));
  } catch (error) {
    if (Date.now() - started > 300_000) throw error;
    return setTimeout(begin, 50);
  }
  run();
}
setTimeout(begin, 0);
