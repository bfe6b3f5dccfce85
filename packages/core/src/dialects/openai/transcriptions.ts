/** Shape: OpenAI API reference, "Create transcription". */
import { invalidRequest } from '../../errors.ts'
import type { Handler } from '../dialect.ts'

/** `POST /v1/audio/transcriptions`. What is said of it, without a look at the file. */
export const rejectTranscription: Handler = async () => {
  throw invalidRequest('No model of this server takes audio.', { param: 'model', issue: 'unsupported' })
}
