import Type from 'typebox'
import { Timestamp } from '../rows.ts'
import { loadQueries } from '../queries.ts'
import {
  Alert,
  CheckState,
  Cooldown,
  Day,
  Event,
  FoundSession,
  Lease,
  Line,
  Memory,
  Notice,
  SavedSettings,
  Session,
  Started,
  Summary,
} from './rows.ts'

const Id = Type.Object({ id: Type.Integer() })
const Cost = Type.Object({ cost_usd: Type.Number() })
const Count = Type.Object({ count: Type.Integer() })

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
  isRunning: { args: [], row: Type.Object({ running: Type.Boolean() }) },
  findRunning: { args: [], row: Session },
  findSession: { args: ['int8'], row: FoundSession },
  listSessions: { args: ['int8', 'int8'], row: Session },
  listChildren: { args: ['int8', 'int8'], row: Session },
  costSince: { args: ['timestamptz'], row: Cost },
  chainCost: { args: ['int8'], row: Cost },
  saveLines: { args: ['int8', 'jsonb'] },
  listLines: { args: ['int8', 'int4', 'int8'], row: Line },
  announceSessions: { args: [] },
  addEvent: { args: ['int8', 'text', 'text', 'text', 'timestamptz'], row: Event },
  addEventOnce: { args: ['int8', 'text', 'text', 'text', 'timestamptz'] },
  listEvents: { args: ['int8', 'int8', 'text', 'text', 'int8'], row: Event },
  addMemory: {
    args: ['text', 'text', 'text', 'float8', 'bool', 'timestamptz', 'int8', 'int2'],
    row: Memory,
  },
  strengthenMemory: { args: ['text', 'text', 'text', 'timestamptz'], row: Memory },
  fadeMemories: { args: ['timestamptz'] },
  updateMemory: { args: ['int8', 'text', 'float8', 'bool', 'timestamptz'], row: Memory },
  removeMemory: { args: ['int8'], row: Id },
  findMemory: { args: ['int8'], row: Memory },
  listMemories: { args: ['int8', 'int8', 'text', 'text', 'bool'], row: Memory },
  listCooldowns: { args: ['timestamptz', 'int8'], row: Cooldown },
  takeActionTurn: { args: [] },
  countActions: { args: ['text', 'text', 'timestamptz', 'timestamptz'], row: Count },
  addAction: { args: ['int8', 'text', 'text', 'text', 'timestamptz'], row: Id },
  finishAction: { args: ['int8', 'text'] },
  listOpenActions: { args: ['int8', 'int8'], row: Id },
  endActions: { args: ['int8', 'text'] },
  claimNotice: { args: ['timestamptz'], row: Notice },
  finishNotice: { args: ['int8', 'timestamptz'] },
  pruneNotices: { args: ['timestamptz'] },
  saveCheckStates: { args: ['jsonb', 'timestamptz'], row: CheckState },
  readSettings: { args: [], row: SavedSettings },
  writeSettings: { args: ['int4', 'text', 'text', 'text', 'bool'] },
  claimSchedule: {
    args: ['timestamptz', 'timestamptz'],
    row: Type.Object({ scheduled_at: Timestamp }),
  },
  isScheduleClaimed: { args: ['timestamptz'], row: Type.Object({ claimed: Type.Boolean() }) },
  saveAlert: { args: ['text', 'text', 'text', 'text', 'timestamptz', 'text'], row: Id },
  noteAlert: { args: ['int8', 'text', 'text', 'int8'] },
  listAlerts: { args: ['int8', 'int8', 'int4'], row: Alert },
  findAlert: { args: ['int8'], row: Alert },
  findStatus: { args: ['int8'], row: Type.Pick(Session, ['status']) },
  listLinesBefore: { args: ['int8', 'int4', 'int8'], row: Line },
  listChain: { args: ['int8', 'int8'], row: Session },
  findSummary: { args: [], row: Summary },
  listDays: { args: ['timestamptz', 'int8'], row: Day },
})
