import crypto from 'node:crypto'

// The database's worker with its clock and its dice stopped: initdb puts both into a new cluster,
// and the same sources shall give the same executable. (Nothing secret comes of it: the cluster has
// no passwords, and its identifier matters only to replication, which the embedded database has
// none of.)
Date.now = () => Date.UTC(2026, 0, 1)
Object.assign(crypto, { randomFillSync: (bytes: Uint8Array) => bytes.fill(0) })

await import('../db/embedded/worker.ts')
