import crypto from 'node:crypto'

// Stops the clock and the dice of the process that makes the executable's database: initdb and the
// migrations put both into it, and the same sources shall give the same executable. (Nothing
// secret comes of it: the database has no passwords, its rows have no tokens, and its identifier
// matters only to replication, which the embedded database has none of.)
Date.now = () => Date.UTC(2026, 0, 1)
Object.assign(crypto, { randomFillSync: (bytes: Uint8Array) => bytes.fill(0) })
