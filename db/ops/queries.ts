import Type from 'typebox'
import { Timestamp } from '../rows.ts'
import { loadQueries } from '../queries.ts'
import {
  AdoptedAlert,
  Alert,
  AlertText,
  CheckBefore,
  Cooldown,
  Day,
  Event,
  Memory,
  Notice,
  SavedSettings,
  Summary,
  UnreadAlert,
} from './rows.ts'

const Id = Type.Object({ id: Type.Integer() })
const Count = Type.Object({ count: Type.Integer() })
const Removed = Type.Object({ removed: Type.Integer() })

/** Every query of `sql/ops.sql` with the types of its arguments and its row. */
export const opsQueries = loadQueries('sql/ops.sql', {
  addEvent: { args: ['int8', 'text', 'text', 'text', 'timestamptz', 'bool'], row: Event },
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
  listMemories: { args: ['int8', 'int8', 'text', 'text'], row: Memory },
  listActiveMemories: { args: ['text', 'text', 'int8'], row: Memory },
  trimMemories: { args: ['int8', 'int8'] },
  noteCheckTime: { args: ['text', 'text', 'text', 'float8', 'timestamptz', 'int8', 'int2'] },
  listCooldowns: { args: ['timestamptz', 'int8'], row: Cooldown },
  takeActionTurn: { args: [] },
  countActions: { args: ['text', 'text', 'timestamptz', 'timestamptz'], row: Count },
  addAction: { args: ['int8', 'text', 'text', 'text', 'timestamptz'], row: Id },
  finishAction: { args: ['int8', 'text'] },
  listOpenActions: { args: ['int8', 'int8'], row: Id },
  endActions: { args: ['int8', 'text'] },
  claimNotice: { args: ['timestamptz'], row: Notice },
  countTold: {
    args: ['int8', 'text', 'text'],
    row: Type.Object({ notices: Type.Integer(), same: Type.Boolean() }),
  },
  withdrawNotice: { args: ['int8'] },
  finishNotice: { args: ['int8', 'timestamptz'] },
  pruneNotices: { args: ['timestamptz'] },
  saveCheckStates: { args: ['jsonb', 'timestamptz'], row: CheckBefore },
  noteTold: { args: ['text', 'text', 'int8'] },
  readSettings: { args: [], row: SavedSettings },
  writeSettings: { args: ['int4', 'text', 'text', 'text', 'bool'] },
  saveAlert: {
    args: [
      ...(['text', 'text', 'text', 'text', 'text', 'timestamptz', 'text'] as const),
      ...(['int2', 'text', 'text'] as const),
    ],
    row: Type.Object({ id: Type.Integer(), count: Type.Integer() }),
  },
  noteAlert: { args: ['int8', 'int4', 'text', 'text', 'int8'] },
  listUnread: { args: ['int8'], row: UnreadAlert },
  adoptAlert: { args: ['int8', 'timestamptz', 'timestamptz', 'text', 'text'], row: AdoptedAlert },
  listAlerts: { args: ['int8', 'int8', 'int4'], row: Alert },
  findAlert: { args: ['int8'], row: Alert },
  listAlertTexts: { args: ['int8', 'int8', 'int8', 'int4'], row: AlertText },
  takeBrief: {
    args: ['text', 'text', 'timestamptz', 'timestamptz'],
    row: Type.Object({ brief_until: Timestamp }),
  },
  freeBrief: { args: ['text', 'text'] },
  addBriefCost: { args: ['timestamptz', 'float8'] },
  findSummary: { args: [], row: Summary },
  listDays: { args: ['timestamptz', 'int8'], row: Day },
  takePruningTurn: { args: [], row: Type.Object({ taken: Type.Boolean() }) },
  pruneLines: { args: ['timestamptz', 'int8'], row: Removed },
  pruneSessions: { args: ['timestamptz', 'int8'], row: Removed },
  pruneEvents: { args: ['timestamptz', 'int8'], row: Removed },
  pruneActions: { args: ['timestamptz', 'int8'], row: Removed },
  pruneAlerts: { args: ['timestamptz', 'int8'], row: Removed },
})
