import Type from 'typebox'
import { Timestamp } from '../rows.ts'
import { loadQueries } from '../queries.ts'
import { FoundSession, Lease, Line, Session, Started } from './rows.ts'

const Id = Type.Object({ id: Type.Integer() })
const Cost = Type.Object({ cost_usd: Type.Number() })

/** Every query of `sql/ops.sql` with the types of its arguments and its row. */
export const opsQueries = loadQueries('sql/ops.sql', {
  lockStarts: { args: [] },
  startSession: {
    args: ['int2', 'text', 'text', 'text', 'timestamptz', 'int8', 'text', 'text'],
    row: Started,
  },
  renewLease: {
    args: ['int8', 'text', 'timestamptz'],
    row: Type.Object({ stop_asked: Type.Boolean() }),
  },
  finishSession: {
    args: ['int8', 'text', 'text', 'timestamptz', 'int4', 'float8', 'int4', 'text'],
    row: Id,
  },
  askToStop: { args: ['int8'], row: Id },
  findLease: { args: [], row: Lease },
  failLapsed: { args: ['int8', 'timestamptz', 'timestamptz'], row: Id },
  lookAtSessions: {
    args: [],
    row: Type.Object({ newest: Type.Integer(), running: Type.Boolean() }),
  },
  findRunning: { args: [], row: Session },
  findSession: { args: ['int8'], row: FoundSession },
  listSessions: { args: ['int8', 'int8'], row: Session },
  listChildren: { args: ['int8', 'int8'], row: Session },
  costSince: { args: ['timestamptz'], row: Cost },
  chainCost: { args: ['int8'], row: Cost },
  saveLines: { args: ['int8', 'jsonb'] },
  listLines: { args: ['int8', 'int4', 'int8'], row: Line },
  announceSessions: { args: [] },
  claimSchedule: {
    args: ['timestamptz', 'timestamptz'],
    row: Type.Object({ scheduled_at: Timestamp }),
  },
  isScheduleClaimed: { args: ['timestamptz'], row: Type.Object({ claimed: Type.Boolean() }) },
  findStatus: { args: ['int8'], row: Type.Pick(Session, ['status']) },
  listLinesBefore: { args: ['int8', 'int4', 'int8'], row: Line },
  listChain: { args: ['int8', 'int8'], row: Session },
})
