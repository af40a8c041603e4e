import { registerHooks } from 'node:module'

// Loaded before the server by NODE_OPTIONS: the same server with one statement a delivery.
registerHooks({
  resolve(specifier, context, next) {
    const other = new URL('./ingest-one-by-one.ts', import.meta.url).href
    const isReplaced = specifier.endsWith('/ingest.ts') && context.parentURL !== other
    return next(isReplaced ? other : specifier, context)
  },
})
