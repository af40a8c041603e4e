import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { forwardingStory } from './hooks-relay-story.ts'

const [embedded] = backends

// A file for each database, so that they run side by side.
t.test('forwarding survives the deaths of both sides (embedded)', (t) =>
  forwardingStory(t, embedded),
)
