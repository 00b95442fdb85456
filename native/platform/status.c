/* SPDX-License-Identifier: MIT
 * status.c: a sentence for each status. Owns nothing; thread-safe.
 */
#include "platform/platform.h"

const char *tlm_status_text(tlm_status status)
{
    switch (status) {
    case TLM_OK:
        return "no error";
    case TLM_NO_MEMORY:
        return "no memory for the recorder's own bookkeeping";
    case TLM_IO:
        return "the operating system refused";
    case TLM_NO_SPACE:
        return "no space on the disk or within the size limit";
    case TLM_EXISTS:
        return "the file exists and was not to be overwritten";
    case TLM_BAD_ARGUMENT:
        return "an argument is out of its range";
    case TLM_ALREADY_RUNNING:
        return "it is running already";
    case TLM_NOT_RUNNING:
        return "no recording is running";
    case TLM_UNSUPPORTED:
        return "not supported by this platform, Python or NumPy";
    case TLM_BAD_FORMAT:
        return "the bytes are not a valid block";
    case TLM_OUT_OF_MEMORY:
        return "the device is out of memory";
    case TLM_OVERFLOW:
        return "the size is larger than any device could have";
    case TLM_FREED:
        return "the object was freed";
    case TLM_NOT_A_HOLDER:
        return "it is not a holder of the object";
    case TLM_NOT_IN_SCOPE:
        return "not currently in a scope";
    case TLM_NOT_REGISTERED:
        return "the object is registered in no scope";
    case TLM_ALREADY_REGISTERED:
        return "the object is registered in a scope already";
    case TLM_UNBALANCED:
        return "a scope or frame was left that is not the innermost";
    case TLM_NO_FRAME:
        return "no function frame";
    case TLM_BAD_SLOT:
        return "there is no slot of this number";
    case TLM_IN_ARENA:
        return "the object's memory ends with its frame or scope";
    case TLM_STILL_HELD:
        return "others hold it too";
    case TLM_ALREADY_POOLED:
        return "the pool holds it already";
    case TLM_WRONG_DEVICE:
        return "the objects live on different devices";
    case TLM_NO_DEVICE:
        return "there is no such device here";
    case TLM_WRONG_TYPE:
        return "the object is of another type";
    case TLM_STALE_SLOT:
        return "the value is on no tape any more";
    case TLM_WRONG_TAPE:
        return "the values are on different tapes";
    case TLM_BUSY:
        return "a backward pass is under way on the tape";
    case TLM_CHANGED:
        return "a value saved for the backward pass was written in place";
    case TLM_SECOND_BACKWARD:
        return "a backward pass has run through this value already";
    case TLM_RULE_FAILED:
        return "the rule of an operation failed";
    }
    return "unknown status";
}
