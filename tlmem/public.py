"""Which module each public name stands in. ``__init__.pyi`` tells type checkers the same."""

_NAMES = {
    "compiler.compiled": "compile",
    "compiler.errors": "NotCompilable",
    "compiler.explain": "Explanation explain",
    "linking": "get_include get_library",
    "recorder": "Recorder mark snapshot",
    "planning": "BadBuffer Plan plan",
    "recording": "Recording read",
    "runtime.checkpointing": "checkpoint",
    "runtime.device": "Device LimitDevice device devices limit_device",
    "runtime.elementwise": (
        "absolute add bitwise_and bitwise_or bitwise_xor clip cos divide equal exp "
        "floor_divide greater greater_equal invert isfinite isnan less less_equal log "
        "logical_and logical_not logical_or logical_xor maximum minimum multiply negative "
        "not_equal power relu remainder sigmoid sin sqrt square subtract tanh where"
    ),
    "runtime.errors": (
        "AlreadyPooled AlreadyRegistered BackwardRunning BadSlot DeviceOutOfMemory DoubleFree "
        "InArena InPlaceOnSaved NoFrame NoSuchDevice NotAHolder NotDifferentiable NotInScope "
        "NotRegistered RuntimeMisuse SecondBackward SizeOverflow StaleSlot StillHeld "
        "UnbalancedScope UseAfterFree UseAfterMove WrongDevice WrongDtype WrongShape WrongTape"
    ),
    "runtime.factories": (
        "arange empty empty_like full ones ones_like randn tensor zeros zeros_like"
    ),
    "runtime.frame": (
        "Frame SlotBuffer arena_empty frame framed function_enter function_exit get_buffer"
    ),
    "runtime.functions": "cross_entropy dropout embedding gelu layer_norm linear scatter_add",
    "runtime.grad_mode": "enable_grad is_grad_enabled no_grad",
    "runtime.holders": "acquire move release release_safe",
    "runtime.interop": "from_dlpack from_numpy",
    "runtime.linalg": "dot matmul",
    "runtime.parameters": (
        "drop_parameter parameter parameter_names parameters register_parameter"
    ),
    "runtime.pool": "PoolableTensor TensorPool global_pool",
    "runtime.pool_stats": "PoolStats",
    "runtime.recomputing": "recompute",
    "runtime.reductions": (
        "all any argmax argmin log_softmax max mean min prod softmax std sum var"
    ),
    "runtime.representation": (
        "BatchableTensorRepresentation FixedShape TensorRepresentation from_batched_tensor "
        "from_tensor register_representation tensor_shape to_batched_tensor to_tensor"
    ),
    "runtime.scope": (
        "Scope ScopeStats ScopedTensor current_scope_id escape in_scope promote register "
        "register_in run run_async scope scope_depth scope_stats scope_tensor_count "
        "unregister"
    ),
    "runtime.shaping": (
        "broadcast_to concat permute reshape squeeze stack swapaxes transpose unsqueeze"
    ),
    "runtime.steps": "steps",
    "runtime.struct": "Struct struct",
    "runtime.tape": "OpStats Tape TapeStats backward clear_grads detach tape zero_grad",
    "runtime.tensor": "Tensor",
    "runtime.tensor_scope": "TensorPlatform TensorScope",
    "runtime.user_ops": "op",
    "runtime.views": "gather take",
}
MODULE_OF = {name: f"tlmem.{module}" for module, names in _NAMES.items() for name in names.split()}
"""Public name -> module."""
MODULES = ("optim",)
"""Public modules beside this one."""
