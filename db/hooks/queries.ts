import Type from 'typebox'
import { loadQueries } from '../queries.ts'
import {
  Attached,
  Attempt,
  Connection,
  Endpoint,
  EndpointKey,
  EventSummary,
  ForwarderState,
  Position,
  StoredEvent,
  StreamBounds,
} from './rows.ts'

const Name = Type.Object({ name: Type.String() })

const page = ['timestamptz', 'int8', 'timestamptz', 'int8', 'int8']

/** Every query of `sql/hooks.sql` with the types of its arguments and its row. */
export const hooksQueries = loadQueries('sql/hooks.sql', {
  findEvent: { args: ['int8'], row: StoredEvent },
  findEventStart: { args: ['int8', 'int4'], row: StoredEvent },
  findSameBody: { args: ['int8'], row: Type.Object({ id: Type.Integer() }) },
  listEvents: { args: page, row: EventSummary },
  listEventsOfProvider: { args: [...page, 'text'], row: EventSummary },
  listEventsOfType: { args: [...page, 'text', 'text'], row: EventSummary },
  searchWindowEnd: { args: ['timestamptz', 'int8', 'int8', 'int8'], row: Position },
  searchWindowThrough: {
    args: ['int8', 'int8', 'int8'],
    row: Type.Object({ id: Type.Integer() }),
  },
  findIdBelow: {
    args: ['int8', 'timestamptz', 'int8', 'int8'],
    row: Type.Object({ id: Type.Integer() }),
  },
  searchEvents: {
    args: [
      ...['timestamptz', 'int8', 'timestamptz', 'int8', 'text', 'text', 'timestamptz', 'int8'],
      ...['bytea', 'bytea', 'text', 'text', 'int8'],
    ],
    row: EventSummary,
  },
  listEventsAfter: { args: ['int8', 'int8'], row: EventSummary },
  findEventAfter: {
    args: ['int8', 'int8', 'text', 'text', 'bytea', 'bytea', 'text', 'text'],
    row: StoredEvent,
  },
  streamBounds: { args: ['int8'], row: StreamBounds },
  listEndpoints: { args: [], row: Endpoint },
  listEndpointKeys: { args: [], row: EndpointKey },
  addEndpoint: { args: ['text', 'bytea', 'bool'], row: Name },
  removeEndpoint: { args: ['text'], row: Name },
  touchEndpoint: { args: ['text', 'timestamptz'] },
  saveAttempt: {
    args: ['int8', 'text', 'text', 'text', 'int2', 'int4', 'text', 'timestamptz'],
    row: Type.Object({ id: Type.Integer() }),
  },
  listAttempts: { args: ['int8', 'int8'], row: Attempt },
  attachForwarder: { args: ['text', 'int8', 'timestamptz'], row: Attached },
  moveForwarder: {
    args: ['text', 'int8', 'int8', 'timestamptz'],
    row: Type.Object({ position: Type.Integer() }),
  },
  listForwarders: { args: ['int8', 'int8'], row: ForwarderState },
  removeForwarder: { args: ['text'], row: Name },
  listConnections: { args: ['jsonb', 'int8'], row: Connection },
})
