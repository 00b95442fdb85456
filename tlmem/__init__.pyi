"""Public names of tlmem, for type checkers; ``_exports.py`` is the table that is used."""
# ruff: noqa: I001, F401

import tlmem.optim as optim
from tlmem.fleets.fleet import Fleet as Fleet, fleet as fleet
from tlmem.recorder.linking import get_include as get_include, get_library as get_library
from tlmem.recorder import (
    Recorder as Recorder,
    mark as mark,
    snapshot as snapshot,
)
from tlmem.notebook import load_ipython_extension as load_ipython_extension
from tlmem.planning.planner import BadBuffer as BadBuffer
from tlmem.planning.planner import Plan as Plan
from tlmem.planning.planner import plan as plan
from tlmem.recording.reader import Recording as Recording, read as read
from tlmem.compiler.compiled import (
    compile as compile,
)
from tlmem.compiler.errors import (
    NotCompilable as NotCompilable,
)
from tlmem.compiler.explain import (
    Explanation as Explanation,
    explain as explain,
)
from tlmem.runtime.autograd.checkpointing import checkpoint as checkpoint
from tlmem.runtime.autograd.checkpointing import recompute as recompute
from tlmem.runtime.device import (
    Device as Device,
    LimitDevice as LimitDevice,
    device as device,
    devices as devices,
    limit_device as limit_device,
    tl_dump_gpu_pool_stats as tl_dump_gpu_pool_stats,
    tl_get_gpu_free_bytes as tl_get_gpu_free_bytes,
    tl_get_gpu_free_count as tl_get_gpu_free_count,
    tl_get_gpu_pool_hit_rate as tl_get_gpu_pool_hit_rate,
    tl_get_gpu_total_allocated_bytes as tl_get_gpu_total_allocated_bytes,
)
from tlmem.runtime.tensors.elementwise import (
    absolute as absolute,
    add as add,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    clip as clip,
    cos as cos,
    divide as divide,
    equal as equal,
    exp as exp,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    invert as invert,
    isfinite as isfinite,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    log as log,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    not_equal as not_equal,
    power as power,
    relu as relu,
    remainder as remainder,
    sigmoid as sigmoid,
    sin as sin,
    softplus as softplus,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tanh as tanh,
    where as where,
)
from tlmem.runtime.errors import (
    AlreadyPooled as AlreadyPooled,
    AlreadyRegistered as AlreadyRegistered,
    BackwardRunning as BackwardRunning,
    BadSlot as BadSlot,
    DeviceOutOfMemory as DeviceOutOfMemory,
    DoubleFree as DoubleFree,
    InArena as InArena,
    InPlaceOnSaved as InPlaceOnSaved,
    NoFrame as NoFrame,
    NoSuchDevice as NoSuchDevice,
    NotAHolder as NotAHolder,
    NotDifferentiable as NotDifferentiable,
    NotInScope as NotInScope,
    NotRegistered as NotRegistered,
    RuntimeMisuse as RuntimeMisuse,
    SecondBackward as SecondBackward,
    SizeOverflow as SizeOverflow,
    StaleSlot as StaleSlot,
    StillHeld as StillHeld,
    UnbalancedScope as UnbalancedScope,
    UseAfterFree as UseAfterFree,
    UseAfterMove as UseAfterMove,
    WrongDevice as WrongDevice,
    WrongDtype as WrongDtype,
    WrongShape as WrongShape,
    WrongTape as WrongTape,
)
from tlmem.runtime.tensors.factories import (
    arange as arange,
    empty as empty,
    empty_like as empty_like,
    full as full,
    ones as ones,
    ones_like as ones_like,
    randn as randn,
    tensor as tensor,
    zeros as zeros,
    zeros_like as zeros_like,
)
from tlmem.runtime.ownership.frame import (
    Frame as Frame,
    SlotBuffer as SlotBuffer,
    arena_empty as arena_empty,
    frame as frame,
    framed as framed,
    function_enter as function_enter,
    function_exit as function_exit,
    get_buffer as get_buffer,
)
from tlmem.runtime.tensors.functions import (
    cross_entropy as cross_entropy,
    dropout as dropout,
    embedding as embedding,
    gelu as gelu,
    layer_norm as layer_norm,
    linear as linear,
    scatter_add as scatter_add,
)
from tlmem.runtime.autograd.grad_mode import (
    enable_grad as enable_grad,
    is_grad_enabled as is_grad_enabled,
    no_grad as no_grad,
)
from tlmem.runtime.ownership.holders import (
    acquire as acquire,
    move as move,
    release as release,
    release_safe as release_safe,
)
from tlmem.runtime.tensors.interop import from_dlpack as from_dlpack, from_numpy as from_numpy
from tlmem.runtime.tensors.linalg import dot as dot, matmul as matmul
from tlmem.runtime.ownership.parameters import (
    drop_parameter as drop_parameter,
    parameter as parameter,
    parameter_names as parameter_names,
    parameters as parameters,
    register_parameter as register_parameter,
)
from tlmem.runtime.ownership.pool import (
    PoolableTensor as PoolableTensor,
    PoolStats as PoolStats,
    TensorPool as TensorPool,
    global_pool as global_pool,
)
from tlmem.runtime.tensors.reductions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    cumsum as cumsum,
    log_softmax as log_softmax,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    softmax as softmax,
    std as std,
    sum as sum,
    var as var,
)
from tlmem.runtime.ownership.representation import (
    BatchableTensorRepresentation as BatchableTensorRepresentation,
    FixedShape as FixedShape,
    TensorRepresentation as TensorRepresentation,
    from_batched_tensor as from_batched_tensor,
    from_tensor as from_tensor,
    register_representation as register_representation,
    tensor_shape as tensor_shape,
    to_batched_tensor as to_batched_tensor,
    to_tensor as to_tensor,
)
from tlmem.runtime.ownership.scope import (
    Scope as Scope,
    ScopeStats as ScopeStats,
    ScopedTensor as ScopedTensor,
    current_scope_id as current_scope_id,
    escape as escape,
    in_scope as in_scope,
    promote as promote,
    register as register,
    register_in as register_in,
    run as run,
    run_async as run_async,
    scope as scope,
    scope_depth as scope_depth,
    scope_stats as scope_stats,
    scope_tensor_count as scope_tensor_count,
    unregister as unregister,
)
from tlmem.runtime.tensors.shaping import (
    broadcast_to as broadcast_to,
    concat as concat,
    permute as permute,
    reshape as reshape,
    squeeze as squeeze,
    stack as stack,
    swapaxes as swapaxes,
    transpose as transpose,
    unsqueeze as unsqueeze,
)
from tlmem.runtime.autograd.training_loop import steps as steps
from tlmem.runtime.ownership.struct import Struct as Struct, struct as struct
from tlmem.runtime.ownership.vector import Vec as Vec, vec as vec
from tlmem.runtime.autograd.tape import (
    OpStats as OpStats,
    Tape as Tape,
    TapeStats as TapeStats,
    backward as backward,
    clear_grads as clear_grads,
    detach as detach,
    tape as tape,
    zero_grad as zero_grad,
)
from tlmem.runtime.tensors.tensor import Tensor as Tensor
from tlmem.runtime.ownership.tensor_scope import (
    TensorPlatform as TensorPlatform,
    TensorScope as TensorScope,
)
from tlmem.runtime.autograd.user_ops import op as op
from tlmem.runtime.tensors.views import gather as gather, take as take

__version__: str
