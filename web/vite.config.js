import { defineConfig } from "vite";

export default defineConfig({
  // Behind a proxy, the page may have another path than /.
  base: "./",
  build: {
    target: "es2022",
    // The Content-Security-Policy has no use for what is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
