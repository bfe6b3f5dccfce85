/** Transcription, which is not supported. Shape: OpenAI API reference, "Create transcription". */
import { invalidRequest } from '../../errors.ts'
import type { Handler } from '../dialect.ts'

/** `POST /v1/audio/transcriptions`: rejected before the file is read. */
export const rejectTranscription: Handler = async () => {
  throw invalidRequest('No model of this server supports audio.', { param: 'model', issue: 'unsupported' })
}
