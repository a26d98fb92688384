// Columns of numbers as analysis/page/packed.h writes them: base64 of LZ4 blocks of variable-length integers.

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; ++at) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

// One LZ4 block; `size` is that of the result. What is no such block ends in an error, never outside of the arrays.
export function unpackLz4(from: Uint8Array, size: number): Uint8Array {
  const out = new Uint8Array(size);
  let at = 0;
  let to = 0;
  const more = (length: number): number => {
    if (length !== 15) return length;
    for (let byte = 255; byte === 255; length += byte) byte = from[at++] ?? 0;
    return length;
  };
  while (at < from.length) {
    const token = from[at++] ?? 0;
    const literals = more(token >> 4);
    if (at + literals > from.length || to + literals > size) throw new Error('a column is damaged');
    out.set(from.subarray(at, at + literals), to);
    at += literals;
    to += literals;
    if (at >= from.length) break;
    const distance = (from[at] ?? 0) | ((from[at + 1] ?? 0) << 8);
    at += 2;
    const length = more(token & 15) + 4;
    if (distance === 0 || distance > to || to + length > size) throw new Error('a column is damaged');
    if (distance >= length) {
      out.copyWithin(to, to - distance, to - distance + length);
      to += length;
    } else {
      for (let end = to + length; to < end; ++to) out[to] = out[to - distance] ?? 0;
    }
  }
  return out;
}

// Up to 2^53 exact, which is 104 days of nanoseconds.
export function unsigned(bytes: Uint8Array, count: number): Float64Array {
  const values = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; ++i) {
    let byte = bytes[at++] ?? 0;
    let value = byte & 127;
    if (byte > 127) {
      let scale = 128;
      do {
        byte = bytes[at++] ?? 0;
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
    }
    values[i] = value;
  }
  return values;
}

function signed(bytes: Uint8Array, count: number): Float64Array {
  const values = unsigned(bytes, count);
  for (let i = 0; i < count; ++i) {
    const value = values[i] ?? 0;
    values[i] = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
  return values;
}

// Each value is a step from the one before.
export function summed(bytes: Uint8Array, count: number): Float64Array {
  const values = signed(bytes, count);
  for (let i = 1; i < count; ++i) values[i] = (values[i] ?? 0) + (values[i - 1] ?? 0);
  return values;
}
