/** The database hosts of `deploy/cluster` in the test: 10.0.0.21 is 127.0.0.21 there. */
export const HOSTS = [1, 2, 3].map((n) => ({
  name: `node${n}`,
  host: `127.0.0.2${n}`,
  /** Of the account that runs all of its programs. */
  uid: 61_020 + n,
}))
