import { registerHooks } from 'node:module'

// Loaded before the server by NODE_OPTIONS: the same server with one statement a delivery.
registerHooks({
  resolve(specifier, context, next) {
    if (!specifier.endsWith('/ingest.ts')) return next(specifier, context)
    return next(new URL('./ingest-one-by-one.ts', import.meta.url).href, context)
  },
})
