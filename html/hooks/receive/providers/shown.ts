import type { ActiveProvider, SecretName } from '../../../../db/hooks/receive/providers.ts'
import type { RejectionCount } from '../../../../db/hooks/receive/rejections.ts'
import type { FormState } from '../../../../kernel/http/view.ts'
import type { AlarmKind } from '../../../../services/hooks/receive/alarms.ts'
import type { ProviderRecovery } from '../../../../services/hooks/receive/recoveries/recoveries.ts'
import type { ProviderStatus } from '../../../../services/hooks/receive/providers/providers.ts'
import type { Option } from '../../../form.ts'

/** One provider as its row on `/providers` shows it. */
export interface ProviderCard
  extends
    Omit<ProviderStatus, 'methods' | 'answer_status'>,
    Pick<
      ActiveProvider,
      | 'scheme'
      | 'scheme_row'
      | 'methods'
      | 'answer'
      | 'recent_count'
      | 'last_event_at'
      | 'rejection_burst'
    > {
  rejections: RejectionCount | undefined
  recoveries: readonly ProviderRecovery[]
  /** Full URL a sender posts to. */
  url: string | null
  /** Whose scheme it has, such as GitHub; null for a sender of any kind. */
  senderTitle: string | null
  /** How its scheme is weaker than others; null where it is not. */
  schemeNote: string | null
  /** The sender makes its secret, so a new one has to be given. */
  isGiven: boolean
  /** Environment variable that may hold the secret of a provider that always exists. */
  variable: string | null
  /** That variable is set: it wins over a stored secret. */
  isConfigured: boolean
  /** A token or secret is stored, also one that can't be read. */
  isStored: boolean
  /** True when signing secrets can be stored. */
  canSign: boolean
  /**
   * Which secret the newest verified delivery had; null when none had one of the present secrets.
   */
  lastSecret: { secret: SecretName; at: Date } | null
  /** Until when the previous secret is accepted as well; null when it is not. */
  previous_until: Date | null
  /** The time of the last rotation, empty for none: the form to rotate sends it back. */
  rotatedAt: string
  /** How long a rotated secret may be accepted beside the new one, and the usual time. */
  overlaps: readonly Option[]
  overlap: string
  /** After how long without an event it counts as silent, such as `15m`; null: off. */
  interval: string | null
  /** The alarms that fire. */
  firing: readonly AlarmKind[]
  /** True for one that is shown whole. */
  open?: boolean
  /** A form that was just sent: it stays open, and shows what was refused. */
  alarms?: Partial<FormState>
  answers?: Partial<FormState>
  rotation?: Partial<FormState>
}
