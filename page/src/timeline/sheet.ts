// What a timeline draws that is narrower than a pixel.

function smallCanvas(): CanvasRenderingContext2D {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  if (!context) throw new Error('this browser draws no canvas');
  return context;
}

// Any colour of CSS as a word of a picture.
export function wordOf(color: string): number {
  const context = smallCanvas();
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0] ?? 0;
}

const FAINTEST = 0.35; // of what takes next to nothing of its pixel

// What is narrower than a pixel, row by row: a picture of which each row is one pixel high, and is drawn as high as a lane's row. One picture of all
// that is in view takes a fraction of the time that a rectangle for each of its pixels takes.
export class Sheet {
  private readonly context = smallCanvas();
  private image = new ImageData(1, 1);
  private words = new Uint32Array(1);
  private shares = new Float32Array(1); // how much of each pixel is taken
  private readonly tops: number[] = [];
  private at = 0; // the newest row's first pixel

  begin(width: number, rows: number): void {
    if (this.image.width !== width || this.image.height !== rows) {
      this.context.canvas.width = width;
      this.context.canvas.height = rows;
      this.image = new ImageData(width, rows);
      this.words = new Uint32Array(this.image.data.buffer);
      this.shares = new Float32Array(width * rows);
    }
    this.words.fill(0);
    this.shares.fill(0);
    this.tops.length = 0;
  }

  // A row at that height of the big picture.
  row(top: number): void {
    this.at = this.tops.length * this.image.width;
    this.tops.push(top);
  }

  // Something from `left` to `right`, in pixels: of several that share a pixel the first one's colour is seen, as strong as they take of it together.
  put(left: number, right: number, word: number): void {
    const { at, image, shares, words } = this;
    const last = Math.min(Math.max(right, Math.floor(left) + 1), image.width); // also of what took no time
    const most = Math.floor((left + right) / 2); // its middle is there: seen at least faintly
    for (let column = Math.max(0, Math.floor(left)); column < last; ++column) {
      const taken = (1 - FAINTEST) * (Math.min(right, column + 1) - Math.max(left, column));
      const share = shares[at + column] ?? 0;
      shares[at + column] = share + taken + (column === most && share < FAINTEST ? FAINTEST : 0);
      if (words[at + column] === 0) words[at + column] = word;
    }
  }

  draw(into: CanvasRenderingContext2D, left: number, width: number, height: number): void {
    const { words, shares, image, tops } = this;
    for (let i = 0; i < tops.length * image.width; ++i) {
      const word = words[i] ?? 0;
      if (word !== 0) words[i] = (word & 0xffffff) | (((word >>> 24) * Math.min(1, shares[i] ?? 0)) << 24);
    }
    this.context.putImageData(image, 0, 0);
    into.imageSmoothingEnabled = false;
    for (const [row, top] of tops.entries()) into.drawImage(this.context.canvas, 0, row, image.width, 1, left, top, width, height);
  }
}
