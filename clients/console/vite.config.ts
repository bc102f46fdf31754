import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const COMPRESSED = /\.(js|css|html|svg)$/;

/** Writes a compressed `.gz` copy of every text file to the same folder; the supervisor serves these copies. */
function compress(folder: string): Plugin {
  return {
    name: 'compress',
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
        if (!COMPRESSED.test(name)) continue;
        const file = join(folder, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
      }
    },
  };
}

const OUT = resolve(import.meta.dirname, 'dist');

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), compress(OUT)],
  // The component kit must use the React of this package.
  resolve: { dedupe: ['react', 'react-dom'] },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
    // Inlined files would need data: in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
  },
});
