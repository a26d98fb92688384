// One file: script and style inline. tools/build_page then puts the hashes of both into the page's policy.
import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  base: './',
  build: { outDir: process.env['GT_PAGE_OUT'] ?? 'dist', emptyOutDir: true, target: 'es2022', modulePreload: false },
  logLevel: 'warn',
});
