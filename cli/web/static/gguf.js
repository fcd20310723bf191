// The header of a dropped GGUF file, without its vocabulary: read slice by slice in the browser,
// walked over within bounds, and written again as a small GGUF header for the server to judge.

const FIRST = 1 << 20, MOST = 1 << 28, MAX_ENTRIES = 1 << 16, MAX_TENSORS = 1 << 16, KEPT_TEXT = 1 << 16;
const WIDTH = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING = 8, ARRAY = 9;

class Reader {
  constructor(file) {
    this.file = file;
    this.at = 0;
    this.bytes = new Uint8Array(0);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Have the next `n` bytes at hand, reading more of the file where they are not. */
  async need(n) {
    const end = this.at + n;
    if (end > Math.min(this.file.size, MOST)) throw new Error("the header reaches beyond the file: is the download complete?");
    if (end <= this.bytes.length) return;
    const target = Math.min(this.file.size, MOST, Math.max(end, 2 * this.bytes.length, FIRST));
    this.bytes = new Uint8Array(await this.file.slice(0, target).arrayBuffer());
    this.view = new DataView(this.bytes.buffer);
  }
  async u32() {
    await this.need(4);
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }
  async length(what) {
    await this.need(8);
    const n = this.view.getBigUint64(this.at, true);
    this.at += 8;
    if (n > BigInt(this.file.size)) throw new Error(`${what} is longer than the file`);
    return Number(n);
  }
  async skip(n) {
    await this.need(n);
    this.at += n;
  }
  async text(what) {
    const n = await this.length(what);
    await this.need(n);
    this.at += n;
    return new TextDecoder().decode(this.bytes.subarray(this.at - n, this.at));
  }
  async skipStrings(n) {
    for (let i = 0; i < n; i += 1) {
      // Most lie in what is at hand: waiting for each would take seconds.
      if (this.at + 8 <= this.bytes.length) {
        const low = this.view.getUint32(this.at, true);
        if (!this.view.getUint32(this.at + 4, true) && this.at + 8 + low <= this.bytes.length) {
          this.at += 8 + low;
          continue;
        }
      }
      await this.skip(await this.length("a string"));
    }
  }
  async value(type) {
    if (type === STRING) return this.skip(await this.length("a text"));
    if (type === ARRAY) {
      const inner = await this.u32();
      const n = await this.length("an array");
      if (inner === STRING) return this.skipStrings(n);
      if (!WIDTH[inner]) throw new Error(`an array holds values of type ${inner}, expected 0 to 12`);
      return this.skip(n * WIDTH[inner]);
    }
    if (!WIDTH[type]) throw new Error(`a value has type ${type}, expected 0 to 12`);
    return this.skip(WIDTH[type]);
  }
}

/** Return {bytes, read}: a small header to send, and how much of the file was read for it. */
export async function compactHeader(file) {
  const reader = new Reader(file);
  await reader.need(Math.min(24, file.size));
  const head = reader.view;
  const version = file.size >= 8 ? head.getUint32(4, true) : 0;
  if (file.size < 24 || head.getUint32(0, true) !== 0x46554747 || (version !== 2 && version !== 3)) {
    // Not what this reads: the server says what it is.
    return { bytes: new Uint8Array(await file.slice(0, FIRST).arrayBuffer()), read: Math.min(file.size, FIRST) };
  }
  reader.at = 8;
  const nTensors = await reader.length("the number of tensors");
  const nEntries = await reader.length("the number of entries");
  if (nTensors > MAX_TENSORS || nEntries > MAX_ENTRIES) throw new Error("the header counts more entries than a model has");
  const parts = [], kept = [];
  for (let i = 0; i < nEntries; i += 1) {
    const start = reader.at;
    const key = await reader.text("a key");
    const type = await reader.u32();
    await reader.value(type);
    const isVocabulary = key.startsWith("tokenizer.") || (type === STRING && reader.at - start > KEPT_TEXT);
    if (!isVocabulary) kept.push([start, reader.at]);
  }
  const table = reader.at;
  for (let i = 0; i < nTensors; i += 1) {
    await reader.skip(await reader.length("a tensor's name"));
    const nDimensions = await reader.u32();
    if (nDimensions > 8) throw new Error("a tensor has more than 8 dimensions");
    await reader.skip(8 * nDimensions + 12);
  }
  const start = new DataView(new ArrayBuffer(24));
  start.setUint32(0, 0x46554747, true);
  start.setUint32(4, version, true);
  start.setBigUint64(8, BigInt(nTensors), true);
  start.setBigUint64(16, BigInt(kept.length), true);
  parts.push(new Uint8Array(start.buffer), ...kept.map(([from, to]) => reader.bytes.slice(from, to)));
  parts.push(reader.bytes.slice(table, reader.at));
  // Room for the padding before the data, at any sound alignment up to 64 KiB.
  parts.push(new Uint8Array(1 << 16));
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return { bytes, read: Math.min(reader.bytes.length, file.size) };
}
